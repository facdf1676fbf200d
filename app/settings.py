"""Choices that outlive the app's run: one small JSON file, written whole or not at all."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from engine.errors import HomeError, InvalidParams
from engine.sampling_params import SamplingParams, with_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`sampling` holds only what differs from `SamplingParams`' own defaults.

    `model` is a path to a GGUF file, or empty for the starter model; `context_tokens` None lets
    the engine choose.
    """

    model: str = ""
    context_tokens: int | None = None
    default_system_prompt: str = "You are a helpful assistant."
    default_sampling: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sampling(self) -> SamplingParams:
        return with_changes(SamplingParams(), self.default_sampling)


def load_settings(path: Path) -> Settings:
    """The saved choices, or the defaults. A file that cannot be understood is an error: replacing
    it silently would lose the user's choices."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise HomeError(f"The settings in {path} cannot be read ({error.strerror}).") from error
    try:
        values = json.loads(text)
        known = {item.name for item in fields(Settings)}
        # A newer version may have written more; what it wrote is not ours to judge.
        settings = replace(Settings(), **{k: v for k, v in values.items() if k in known})
        _ = settings.sampling
    except (ValueError, TypeError, AttributeError, InvalidParams) as error:
        raise HomeError(
            f"The settings in {path} are damaged ({error}): correct the file, or delete it to"
            " start from the defaults."
        ) from error
    return settings


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the file in one step, so that a crash leaves the old one or the new one."""
    values = {item.name: getattr(settings, item.name) for item in fields(Settings)}
    temporary = path.with_suffix(".tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(values, file, indent=2, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise HomeError(f"The settings could not be saved ({error.strerror}).") from error
