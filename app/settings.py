"""Choices that outlive the app's run: one small JSON file, written whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from app.private_file import write_private
from engine.config import DEFAULT_KV_DISK_BYTES, EngineConfig
from engine.errors import HomeError, InvalidParams
from engine.sampling_params import SamplingParams, with_changes

WHOLE = ("max_batch_tokens", "kv_disk_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`sampling` holds only what differs from `SamplingParams`' own defaults.

    `model` is a path to a GGUF file, or empty for the starter model; `draft_model` is a smaller one
    that guesses for it, or empty for none. `context_tokens` None lets the engine choose.
    `reproducible`: a chat's answer does not depend on what was held, at the price of being computed
    alone. `automatic_titles`: the model names new conversations; the starter model never does,
    since it names them badly. `threads`, `max_batch_tokens`, `kv_type`, `kv_ram_bytes` and
    `kv_disk_bytes` are those of `EngineConfig`.
    """

    model: str = ""
    draft_model: str = ""
    context_tokens: int | None = None
    threads: int | None = None
    max_batch_tokens: int = 512
    kv_type: str = "auto"
    kv_ram_bytes: int | None = None
    kv_disk_bytes: int = DEFAULT_KV_DISK_BYTES
    default_system_prompt: str = "You are a helpful assistant."
    default_sampling: Mapping[str, Any] = field(default_factory=dict)
    reproducible: bool = False
    automatic_titles: bool = True

    @property
    def sampling(self) -> SamplingParams:
        return with_changes(SamplingParams(), self.default_sampling)

    def engine_config(
        self,
        model_path: Path,
        kv_folder: Path | None = None,
        draft_model_path: Path | None = None,
    ) -> EngineConfig:
        """How a model is loaded under these choices. Raises InvalidParams."""
        return EngineConfig(
            model_path=model_path,
            context_tokens=self.context_tokens,
            threads=self.threads,
            max_batch_tokens=self.max_batch_tokens,
            kv_type=self.kv_type,
            kv_ram_bytes=self.kv_ram_bytes,
            kv_disk_bytes=self.kv_disk_bytes,
            kv_folder=kv_folder,
            draft_model_path=draft_model_path,
        )


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
    optional = ("context_tokens", "threads", "kv_ram_bytes")
    for name, is_right in (
        ("model", isinstance(settings.model, str)),
        ("draft_model", isinstance(settings.draft_model, str)),
        *((name, type(getattr(settings, name)) in (int, type(None))) for name in optional),
        *((name, type(getattr(settings, name)) is int) for name in WHOLE),
        ("kv_type", isinstance(settings.kv_type, str)),
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
