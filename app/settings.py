"""Choices that outlive the app's run: one small JSON file, written whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from app.private_file import write_private
from engine.errors import HomeError, InvalidParams
from engine.sampling_params import SamplingParams, with_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`sampling` holds only what differs from `SamplingParams`' own defaults.

    `model` is a path to a GGUF file, or empty for the starter model; `context_tokens` None lets
    the engine choose. `reproducible`: a chat's answer does not depend on what was held, at the
    price of being computed alone. `automatic_titles`: the model names new conversations; the
    starter model never does, since it names them badly.
    """

    model: str = ""
    context_tokens: int | None = None
    default_system_prompt: str = "You are a helpful assistant."
    default_sampling: Mapping[str, Any] = field(default_factory=dict)
    reproducible: bool = False
    automatic_titles: bool = True

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
        raise HomeError(
            f"The settings in {path} cannot be read ({error.strerror}): give your user the right to"
            " read the file, or delete it to start from the defaults."
        ) from error
    except ValueError as error:
        raise _damaged(path, error) from error
    try:
        return _from_json(json.loads(text))
    except (ValueError, TypeError, RecursionError, InvalidParams) as error:
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
    """Raises ValueError, TypeError or InvalidParams for what would fail later on."""
    if not isinstance(values, dict):
        raise ValueError("they are no JSON object")
    known = {item.name for item in fields(Settings)}
    # A newer version may have written more; what it wrote is not ours to judge.
    settings = Settings(**{name: value for name, value in values.items() if name in known})
    tokens = settings.context_tokens
    for name, is_right in (
        ("model", isinstance(settings.model, str)),
        ("context_tokens", tokens is None or type(tokens) is int),
        ("default_system_prompt", isinstance(settings.default_system_prompt, str)),
        ("default_sampling", isinstance(settings.default_sampling, dict)),
        ("reproducible", isinstance(settings.reproducible, bool)),
        ("automatic_titles", isinstance(settings.automatic_titles, bool)),
    ):
        if not is_right:
            raise ValueError(f"{name} is of the wrong kind")
    _ = settings.sampling
    return settings


def _damaged(path: Path, error: Exception) -> HomeError:
    return HomeError(
        f"The settings in {path} are damaged ({error}): correct the file, or delete it to start"
        " from the defaults."
    )
