"""What is chosen for a conversation in the settings, between widgets and values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.chat.example import Example, examples_as_json, examples_from_json
from app.ui.sampling import read_changes, write_changes
from engine.errors import UsageError
from engine.sampling_params import SamplingParams, changes_between, with_changes


@dataclass(frozen=True, slots=True)
class Choices:
    """A system prompt, how the next token is picked, and the examples before everything."""

    system_prompt: str
    params: SamplingParams
    examples: tuple[Example, ...] = ()

    @classmethod
    def of_widgets(cls, values: Sequence[Any]) -> "Choices":
        """Raises UsageError for what is not possible."""
        prompt, sampling, examples = values
        params = with_changes(SamplingParams(), read_changes(sampling))
        return cls(str(prompt), params, read_examples(examples))

    def for_widgets(self) -> list[Any]:
        """What `of_widgets` takes."""
        examples = json.dumps(examples_as_json(self.examples))
        return [self.system_prompt, write_changes(self.params), examples]

    def sampling_beside(self, params: SamplingParams) -> dict[str, Any]:
        """What a conversation stores where the app's own choices are `params`."""
        return changes_between(params, self.params)


def read_examples(text: str) -> tuple[Example, ...]:
    """Of what the page's script has written. A row without any text is no example yet."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError("The examples came damaged from the page: reload it.")
    return examples_from_json([each for each in found if any(map(str.strip, _texts(each)))])


def _texts(found: dict[Any, Any]) -> list[str]:
    return [each for each in found.values() if isinstance(each, str)]
