"""Which model is to answer, and what goes with it: what a command names, else what is saved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from app.models.local import find_model
from app.models.mmproj import mmproj_beside
from app.models.starter import starter_model
from app.paths import Paths
from app.safe_mode import safe_config
from app.settings import Settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import ModelNotFound


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """`model` and `draft_model` override the saved choices: a path, a name of `models list`, or
    empty. `adapters` (each a path or a name, and a scale) go before those saved for the model, and
    the file `mmproj` before the multimodal part that lies beside it. `backend` is who computes, as
    in `EngineConfig`."""

    paths: Paths
    settings: Settings
    model: str = ""
    draft_model: str = ""
    adapters: tuple[tuple[str, float], ...] = ()
    mmproj: str = ""
    backend: str = "auto"

    @property
    def is_named(self) -> bool:
        """Whoever names a model or an adapter in the command wants that one or none."""
        return bool(self.model or self.adapters)

    @property
    def fallback(self) -> Path | None:
        """Which model may take its place where memory is too small; None: no other one."""
        return None if self.is_named else starter_model()

    @cached_property
    def model_path(self) -> Path:
        """Raises ModelNotFound when none was chosen and the starter is not installed."""
        return find_model(self.paths, self.settings, self.model)

    @cached_property
    def draft_model_path(self) -> Path | None:
        """The model that guesses for the other one; None: there is none."""
        wanted = self.draft_model or self.settings.draft_model
        return find_model(self.paths, self.settings, wanted) if wanted else None

    @property
    def used_adapters(self) -> tuple[Adapter, ...]:
        """What changes the model. Raises InvalidParams, or ModelNotFound for a name."""
        if self.adapters:
            return self.find_adapters(self.adapters)
        return self.settings.adapters_of(self.model_path)

    def find_adapters(self, named: Sequence[tuple[str, float]]) -> tuple[Adapter, ...]:
        return tuple(
            Adapter(find_model(self.paths, self.settings, name), scale) for name, scale in named
        )

    @property
    def mmproj_path(self) -> Path | None:
        """What the model reads pictures and sounds with; None: there is nothing.

        Raises ModelNotFound.
        """
        if not self.mmproj:
            return mmproj_beside(self.model_path)
        path = Path(self.mmproj)
        if not path.is_file():
            raise ModelNotFound(f"There is no mmproj file at {path}: name another one.")
        return path

    def config(self, *, keeps_kv: bool, is_safe: bool) -> EngineConfig:
        """Everything the engine is told. `keeps_kv`: what was read stays on the disk."""
        if is_safe:
            return safe_config(self.settings.engine_config(self.model_path))
        config = self.settings.engine_config(
            self.model_path,
            self.paths.kv if keeps_kv else None,
            self.draft_model_path,
            self.used_adapters,
            self.mmproj_path,
        )
        return replace(config, backend=self.backend)
