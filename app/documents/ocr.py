"""Reading text from pictures: what does it, whether it is there, and what a person can do where it
is not."""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

LIBRARIES = ("rapidocr", "onnxruntime")
INSTALL = 'pip install "inglenook[ocr]"'
LONGEST_SIDE = 1_650
"""Of the pictures that are read, in pixels: a page of A4 at 140 dots an inch."""

Pixels = npt.NDArray[np.uint8]
"""[height, width, 3], red first."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Words in one line of a picture. `corners` are in its pixels, (x, y) each, in the order in
    which they go around the words as the picture has them, from the upper left one."""

    text: str
    confidence: float
    corners: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of one picture. Turned clockwise by so many quarters it would be upright."""

    lines: Sequence[Seen]
    quarters: int = 0


class Engine(Protocol):
    """Owned by the process that reads pictures."""

    def look(self, pixels: Pixels) -> Sight:
        """Raises EngineFailed, which says nothing of the next picture, or MemoryError."""
        ...


class EngineFailed(Exception):
    """What reads the pictures could not read this one."""


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in LIBRARIES)


def remedy() -> str:
    """What can be done for pages that are pictures."""
    if is_installed():
        return "OCR can read them once you ask for it."
    if getattr(sys, "frozen", False):
        return (
            "This app has no OCR: let your scanner's program write PDFs with text, or install"
            f" Inglenook for Python with `{INSTALL}`."
        )
    return f"`{INSTALL}` adds OCR, which can read them."
