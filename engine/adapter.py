"""A LoRA file that changes how a model answers, and how strongly."""

from ctypes import c_float
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InvalidParams

LEAST_SCALE, MOST_SCALE = -4.0, 4.0


@dataclass(frozen=True, slots=True)
class Adapter:
    """`scale` 1 is as the adapter was trained, 0 is without it, below 0 turns it round."""

    path: Path
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not LEAST_SCALE <= self.scale <= MOST_SCALE:
            raise InvalidParams(
                f"The scale of {self.path.name} must be between {LEAST_SCALE:g} and {MOST_SCALE:g},"
                f" got {self.scale:g}."
            )

    @property
    def acts(self) -> bool:
        """llama.cpp leaves out what has a scale of 0, in its 32 bits."""
        return c_float(self.scale).value != 0.0

    @property
    def name(self) -> str:
        """As in "SmolLM2 + pirate 0.8"; the scale is said where it is not 1."""
        return self.path.stem if self.scale == 1.0 else f"{self.path.stem} {self.scale:g}"

    @property
    def num_bytes(self) -> int:
        """About what it takes in memory; 0 where there is no file, which loading says."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0
