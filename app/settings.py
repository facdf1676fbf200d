"""Choices that outlive the app's run: one small JSON file, written whole or not at all."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from app.chat.example import Example, examples_from_json
from app.documents.embedding.choice import EmbedderChoice
from app.models.adapters import adapters_as_json, adapters_from_json
from app.models.mmproj import mmproj_beside
from app.private_file import write_private
from engine.adapter import Adapter
from engine.config import (
    DEFAULT_KV_DISK_BYTES,
    MOST_BYTES,
    MOST_THREADS,
    MOST_TOKENS,
    EngineConfig,
)
from engine.errors import HomeError, InvalidParams, UsageError
from engine.sampling_params import SamplingParams, with_changes

OWN = {"context_tokens": int, "threads": int, "kv_type": str}
"""What may be chosen for one model, and its type."""
ADAPTERS = "adapters"
"""And the adapters that it is loaded with, as a list of files and scales."""
WHOLE = ("max_batch_tokens", "kv_disk_bytes")
MOST = {
    "context_tokens": MOST_TOKENS,
    "max_batch_tokens": MOST_TOKENS,
    "threads": MOST_THREADS,
    "kv_ram_bytes": MOST_BYTES,
    "kv_disk_bytes": MOST_BYTES,
}
MOST_MINUTES = 10_000
"""A week: whoever wants more wants the model to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`sampling` holds only what differs from `SamplingParams`' own defaults.

    `model` is a path to a GGUF file, or empty for the starter model; `draft_model` is a smaller one
    that guesses for it, or empty for none. `context_tokens` None lets the engine choose.
    `reproducible`: a chat's answer does not depend on what was held, at the price of being computed
    alone. `automatic_titles`: the model names new conversations; the starter model never does,
    since it names them badly. `show_likelihoods`: answers are stored with how likely each token
    was. After `unload_after_minutes` in which nobody asked anything the model is freed, and loaded
    again at the next message (None: never). `by_model` has, by the path of its file, what one
    model is loaded with instead of `context_tokens`, `threads` and `kv_type`, and its `adapters`.
    `threads`, `max_batch_tokens`, `kv_type`, `kv_ram_bytes` and `kv_disk_bytes` are those of
    `EngineConfig`. `embedder` and what begins with it are those of `EmbedderChoice`.
    """

    model: str = ""
    draft_model: str = ""
    context_tokens: int | None = None
    threads: int | None = None
    max_batch_tokens: int = 512
    kv_type: str = "auto"
    kv_ram_bytes: int | None = None
    kv_disk_bytes: int = DEFAULT_KV_DISK_BYTES
    unload_after_minutes: int | None = None
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default_system_prompt: str = "You are a helpful assistant."
    default_sampling: Mapping[str, Any] = field(default_factory=dict)
    default_examples: tuple[Example, ...] = ()
    show_likelihoods: bool = False
    reproducible: bool = False
    automatic_titles: bool = True
    embedder: str = "english"
    embedder_query_prefix: str | None = None
    embedder_passage_prefix: str | None = None
    embedder_languages: tuple[str, ...] | None = None

    @property
    def embedder_choice(self) -> EmbedderChoice:
        return EmbedderChoice(
            self.embedder,
            self.embedder_query_prefix,
            self.embedder_passage_prefix,
            self.embedder_languages,
        )

    def with_embedder(self, choice: EmbedderChoice) -> "Settings":
        return replace(
            self,
            embedder=choice.model,
            embedder_query_prefix=choice.query_prefix,
            embedder_passage_prefix=choice.passage_prefix,
            embedder_languages=choice.languages,
        )

    @property
    def sampling(self) -> SamplingParams:
        return with_changes(SamplingParams(), self.default_sampling)

    def adapters_of(self, model_path: Path) -> tuple[Adapter, ...]:
        """Those that were chosen for this model, in their order."""
        return adapters_from_json(self.by_model.get(str(model_path), {}).get(ADAPTERS, ()))

    def with_adapters(self, model_path: Path, adapters: Sequence[Adapter]) -> "Settings":
        """With these, and no others, for this model."""
        key = str(model_path)
        own = {
            name: value for name, value in self.by_model.get(key, {}).items() if name != ADAPTERS
        }
        if adapters:
            own[ADAPTERS] = adapters_as_json(adapters)
        others = {path: each for path, each in self.by_model.items() if path != key}
        return replace(self, by_model={**others, key: own} if own else others)

    def without_adapter(self, path: Path) -> "Settings":
        """With this one for no model."""
        settings = self
        for model in map(Path, self.by_model):
            chosen = self.adapters_of(model)
            left = [each for each in chosen if each.path != path]
            if len(left) < len(chosen):
                settings = settings.with_adapters(model, left)
        return settings

    def engine_config(
        self,
        model_path: Path,
        kv_folder: Path | None = None,
        draft_model_path: Path | None = None,
        adapters: Sequence[Adapter] | None = None,
        mmproj_path: Path | None = None,
    ) -> EngineConfig:
        """How a model is loaded under these choices; `adapters` instead of its own, and another
        multimodal part than that beside it, if given. Raises InvalidParams."""
        chosen = self.adapters_of(model_path) if adapters is None else adapters
        own = self.by_model.get(str(model_path), {})
        return EngineConfig(
            model_path=model_path,
            context_tokens=own.get("context_tokens", self.context_tokens),
            threads=own.get("threads", self.threads),
            max_batch_tokens=self.max_batch_tokens,
            kv_type=own.get("kv_type", self.kv_type),
            kv_ram_bytes=self.kv_ram_bytes,
            kv_disk_bytes=self.kv_disk_bytes,
            kv_folder=kv_folder,
            draft_model_path=draft_model_path,
            adapters=tuple(chosen),
            mmproj_path=mmproj_path or mmproj_beside(model_path),
        )


def load_settings(path: Path) -> Settings:
    """The saved choices, or the defaults. A file that cannot be understood is an error: replacing
    it silently would lose the user's choices."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except OSError as error:
        raise HomeError(
            f"The settings in {path} cannot be read ({error.strerror}): give your user the right to"
            " read the file, or delete it to start from the defaults."
        ) from error
    except ValueError as error:
        raise _damaged(path, error) from error
    try:
        return _from_json(json.loads(text))
    except (ValueError, TypeError, OverflowError, RecursionError, UsageError) as error:
        raise _damaged(path, error) from error


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the file in one step, so that a crash leaves the old one or the new one."""
    try:
        write_private(path, json.dumps(asdict(settings), indent=2))
    except OSError as error:
        raise HomeError(
            f"The settings could not be saved ({error.strerror}): make room on the disk, or make"
            f" {path.parent} writable."
        ) from error


def _from_json(values: object) -> Settings:
    """Raises ValueError, TypeError, OverflowError or UsageError for what would fail later on."""
    if not isinstance(values, dict):
        raise ValueError("they are no JSON object")
    known = {item.name for item in fields(Settings)}
    # A newer version may have written more; what it wrote is not ours to judge.
    given = {name: value for name, value in values.items() if name in known}
    if "default_examples" in given:
        given["default_examples"] = examples_from_json(given["default_examples"])
    if isinstance(given.get("embedder_languages"), list):
        given["embedder_languages"] = tuple(map(str, given["embedder_languages"]))
    settings = Settings(**given)
    optional = ("context_tokens", "threads", "kv_ram_bytes", "unload_after_minutes")
    for name, is_right in (
        ("model", isinstance(settings.model, str)),
        ("draft_model", isinstance(settings.draft_model, str)),
        *((name, type(getattr(settings, name)) in (int, type(None))) for name in optional),
        *((name, type(getattr(settings, name)) is int) for name in WHOLE),
        ("kv_type", isinstance(settings.kv_type, str)),
        ("default_system_prompt", isinstance(settings.default_system_prompt, str)),
        ("by_model", isinstance(settings.by_model, dict)),
        ("default_sampling", isinstance(settings.default_sampling, dict)),
        ("reproducible", isinstance(settings.reproducible, bool)),
        ("automatic_titles", isinstance(settings.automatic_titles, bool)),
        ("show_likelihoods", isinstance(settings.show_likelihoods, bool)),
        ("embedder", isinstance(settings.embedder, str)),
        *(
            (name, isinstance(getattr(settings, name), str | None))
            for name in ("embedder_query_prefix", "embedder_passage_prefix")
        ),
        ("embedder_languages", isinstance(settings.embedder_languages, tuple | None)),
    ):
        if not is_right:
            raise ValueError(f"{name} is of the wrong kind")
    check_rest(settings.unload_after_minutes)
    for name in ("model", "draft_model", "embedder"):
        _check_path(name, getattr(settings, name))
    for path, own in settings.by_model.items():
        check_own(path, own)
    _check_most(asdict(settings))
    _ = settings.sampling
    return settings


def check_rest(minutes: float | None) -> None:
    """Raises InvalidParams for a time after which no model is freed."""
    if minutes is not None and not 1 <= minutes <= MOST_MINUTES:
        raise InvalidParams(
            f"The model can be freed after 1 to {MOST_MINUTES:,} minutes, not {minutes:g}."
        )


def check_own(path: str, own: object) -> None:
    """Raises ValueError or InvalidParams for what one model cannot be loaded with."""
    if not isinstance(own, dict) or set(own) - {*OWN, ADAPTERS}:
        raise ValueError(f"by_model of {path} is of the wrong kind")
    for name, kind in OWN.items():
        if name in own and type(own[name]) is not kind:
            raise ValueError(f"{name} of {path} is of the wrong kind")
    _check_path("a model of by_model", path)
    _check_most(own)
    for adapter in adapters_from_json(own.get(ADAPTERS, ())):
        _check_path("an adapter", str(adapter.path))


def _check_most(values: Mapping[str, Any]) -> None:
    """Raises ValueError for a figure that nobody chose. One that is only too small is told when a
    model is loaded, and can be mended on the page."""
    for name, most in MOST.items():
        if values.get(name) is not None and values[name] > most:
            raise ValueError(f"{name} is more than {most:,}")


def _check_path(name: str, path: str) -> None:
    """Raises ValueError for what no file can be called."""
    if "\0" in path:
        raise ValueError(f"{name} has a NUL in its name")
    os.fsencode(path)


def _damaged(path: Path, error: Exception) -> HomeError:
    return HomeError(
        f"The settings in {path} are damaged ({str(error).rstrip('.')}): correct the file, or"
        " delete it to start from the defaults."
    )
