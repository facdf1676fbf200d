"""The picture of a page with the words that are meant: what is asked for, and what comes."""

import math
import unicodedata
from dataclasses import dataclass
from typing import Any

from app.documents.png import check_png

MOST_PIXELS = 2_000
"""On each side."""
MOST_PNG_BYTES = 16_000_000
MOST_BOXES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureWish:
    """`words` are the words to be boxed, as the text of the page has them, and `num_before` is how
    many letters stand before them there: the same words may stand on a page twice."""

    number: int
    words: str = ""
    num_before: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A place on a picture, in shares of its width and height, from its upper left corner."""

    left: float
    top: float
    width: float
    height: float


def places_of(box: Box) -> tuple[float, float, float, float]:
    return box.left, box.top, box.width, box.height


def check_box(box: Box) -> Box:
    """Raises ValueError for one that is no place on a picture."""
    if not all(math.isfinite(side) and 0 <= side <= 1 for side in places_of(box)):
        raise ValueError("a box lies outside of its picture")
    return box


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    """`png` shows the whole page. No boxes: the words were not found on it. `sha256` is that of the
    file that was drawn."""

    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...]
    sha256: str = ""


def letters_of(text: str) -> str:
    """By what two spellings of one text are compared: its letters and digits alone, without case,
    accents and the ways in which lines are broken."""
    return "".join(
        letter
        for letter in unicodedata.normalize("NFKD", text).casefold()
        # Others are two units in a PDF.
        if letter.isalnum() and letter <= "\uffff"
    )


def picture_from(said: dict[str, Any], png: bytes, sha256: str) -> PagePicture:
    """What a process says that is believed in nothing. Raises ValueError, KeyError, TypeError,
    OverflowError."""
    width, height = int(said["width"]), int(said["height"])
    if not (0 < width <= MOST_PIXELS and 0 < height <= MOST_PIXELS):
        raise ValueError("a picture of another size was asked for")
    check_png(png, width, height)
    boxes = tuple(check_box(Box(*map(float, sides))) for sides in said["boxes"][:MOST_BOXES])
    return PagePicture(png=png, width=width, height=height, boxes=boxes, sha256=sha256)
