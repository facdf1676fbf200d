"""A preset: choices under a name, which can be given to others as a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.chat.answer_form import AnswerForm
from app.chat.example import Example, examples_as_json, examples_from_json
from engine.errors import InvalidParams, UsageError
from engine.sampling_params import SamplingParams, with_changes

VERSION = 1
LONGEST_NAME = 60
LONGEST_PROMPT = 100_000
LARGEST_FILE = 1_000_000
"""Bytes of a preset as a file."""
FIELDS = frozenset({"inglenook_preset", "name", "sampling", "system_prompt", "form", "examples"})
LEFT = "max_tokens", "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """`sampling` holds the controls that are not as `SamplingParams` has them by itself.

    What is None is left as it is where the preset is taken. `is_given`: it comes with the app or
    the model, and leaves the length of answers and the seed as they are, too.
    """

    name: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    system_prompt: str | None = None
    form: AnswerForm | None = None
    examples: tuple[Example, ...] | None = None
    is_given: bool = False

    @property
    def params(self) -> SamplingParams:
        return with_changes(SamplingParams(), self.sampling)

    def params_over(self, params: SamplingParams) -> SamplingParams:
        """The choices of one generation under this preset, when they were `params` before."""
        if not self.is_given:
            return self.params
        return with_changes(self.params, {name: getattr(params, name) for name in LEFT})

    def as_json(self) -> dict[str, Any]:
        """What `read_preset` takes."""
        return {
            "inglenook_preset": VERSION,
            "name": self.name,
            "sampling": dict(self.sampling),
            "system_prompt": self.system_prompt,
            "form": None if self.form is None else self.form.as_json(),
            "examples": None if self.examples is None else examples_as_json(self.examples),
        }

    def as_text(self) -> str:
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_preset_file(text: str) -> Preset:
    """The preset in a file that may come from anybody. Raises UsageError."""
    size = len(text.encode("utf-8", "replace"))
    if size > LARGEST_FILE:
        raise _unfit(f"it has {size:,} bytes, and {LARGEST_FILE:,} are allowed")
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        raise _unfit("it is no JSON") from None
    return read_preset(found)


def read_preset(found: object) -> Preset:
    """Raises UsageError for a value that is no preset, or not possible as one."""
    if not isinstance(found, Mapping) or "inglenook_preset" not in found:
        raise _unfit("it is no preset of Inglenook")
    version = found["inglenook_preset"]
    if type(version) is not int or version < 1:
        raise _unfit("its version is no number")
    if version > VERSION:
        raise UsageError(
            f"This preset was made by a newer version of the app (form {version}; this version"
            f" reads up to {VERSION}): update the app to use it."
        )
    for name in found:
        if name not in FIELDS:
            raise _unfit(f"it has {str(name)[:40]!r}, which no preset has")
    try:
        # Half characters can be written in JSON, and in no other file.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise _unfit("it has characters that are none, or is too deep") from None
    return Preset(
        name=checked_name(found.get("name")),
        sampling=_sampling(found.get("sampling")),
        system_prompt=_system_prompt(found.get("system_prompt")),
        form=_form(found.get("form")),
        examples=_examples(found.get("examples")),
    )


def checked_name(found: object) -> str:
    """A name that can stand in a list. Raises UsageError."""
    name = " ".join(found.split()) if isinstance(found, str) else ""
    if not name:
        raise UsageError("A preset needs a name: write one.")
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"The name of a preset may have {LONGEST_NAME} characters, and this one has"
            f" {len(name):,}: shorten it."
        )
    if not name.isprintable():
        raise UsageError("The name of a preset has characters that cannot be seen: write another.")
    return name


def _sampling(found: object) -> Mapping[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise _unfit("`sampling` is no object")
    try:
        with_changes(SamplingParams(), found)
    except InvalidParams as error:
        raise _unfit(str(error).rstrip(".")) from None
    return dict(found)


def _system_prompt(found: object) -> str | None:
    if found is not None and not isinstance(found, str):
        raise _unfit("`system_prompt` is no text")
    if found is not None and len(found) > LONGEST_PROMPT:
        raise _unfit(
            f"its system prompt has {len(found):,} characters, and {LONGEST_PROMPT:,} are allowed"
        )
    return found


def _form(found: object) -> AnswerForm | None:
    if found is None:
        return None
    try:
        return AnswerForm.from_json(found)
    except ValueError as error:
        raise _unfit(f"its form is not possible ({error})") from None


def _examples(found: object) -> tuple[Example, ...] | None:
    if found is None:
        return None
    try:
        return examples_from_json(found)
    except UsageError as error:
        raise _unfit(str(error).rstrip(".")) from None


def _unfit(reason: str) -> UsageError:
    return UsageError(
        f"This preset cannot be used, because {reason}: nothing was changed; choose a file that was"
        " exported as a preset."
    )
