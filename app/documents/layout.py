"""Words seen in a picture, brought into the order in which a person reads them: columns one after
the other, the cells of a table row by row."""

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.documents.cleaning import one_line
from app.documents.document import Piece
from app.documents.ocr import Seen, Sight
from app.documents.page_picture import Box

LEAST_CONFIDENCE = 0.8
"""What the models have not learned to read (Cyrillic, Arabic, Hangul) comes with less, mostly."""
LEAST_SOLID = 0.6
"""The share of a line that is no space: signs that the models do not know come as spaces."""
GUTTER = 1.0
LEAST_IN_COLUMN = 3
LEAST_WIDE = 8.0
LEAST_FULL = 0.7
"""Lines of a column are mostly as long as it is wide; cells of a table are not."""
CELL = 2.0
PARAGRAPH = 0.9
"""Gaps and widths in heights of a line."""
BETWEEN_CELLS = " | "
HYPHEN = re.compile(r"[^\W\d_]-$")
"""At the end of a line it breaks a word."""


@dataclass(frozen=True, slots=True)
class Line:
    """Words as they lie once the page is upright and straight; `box` is where they are seen."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    box: Box
    is_level: bool

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def width(self) -> float:
        return self.right - self.left


Row = list[Line]


def text_of(sight: Sight, width: int, height: int) -> tuple[str, tuple[Piece, ...]]:
    """The text of a picture of so many pixels, and where each piece of it stands there."""
    lines = _upright(sight, width, height)
    if not lines:
        return "", ()
    size = statistics.median(line.height for line in lines)
    return _joined(_blocks(_rows(lines, size), size), size)


def is_words(seen: Seen) -> bool:
    """Whether it is what stands there, as far as the engine knows itself."""
    text = one_line(seen.text)
    solid = sum(not character.isspace() for character in seen.text)
    # Of Greek only its capitals are read well.
    greek = sum("\u0370" <= letter <= "\u03ff" for letter in text)
    return (
        bool(text)
        and seen.confidence >= LEAST_CONFIDENCE
        and solid >= LEAST_SOLID * len(seen.text)
        and 2 * greek <= solid
    )


def _upright(sight: Sight, width: int, height: int) -> list[Line]:
    kept = [seen for seen in sight.lines if is_words(seen)]
    turned = [
        [_turned(corner, sight.quarters, width, height) for corner in seen.corners] for seen in kept
    ]
    tilt = _tilt(turned, sight.quarters)
    lines = []
    for seen, corners in zip(kept, turned, strict=True):
        straight = [_rotated(corner, -tilt) for corner in corners]
        left, right = min(x for x, _ in straight), max(x for x, _ in straight)
        top, bottom = min(y for _, y in straight), max(y for _, y in straight)
        box = _box(seen.corners, width, height)
        is_level = sight.quarters == 0 and right - left >= bottom - top
        lines.append(Line(one_line(seen.text), left, top, right, bottom, box, is_level))
    return lines


def _turned(
    corner: tuple[float, float], quarters: int, width: int, height: int
) -> tuple[float, float]:
    x, y = corner
    return ((x, y), (height - y, x), (width - x, height - y), (y, width - x))[quarters % 4]


def _tilt(lines: Sequence[Sequence[tuple[float, float]]], quarters: int) -> float:
    """The angle at which a sheet was laid into the scanner: that of its longer lines."""
    angles = []
    for corners in lines:
        # Which corner is the upper left one now.
        first, second, below = (corners[(place - quarters) % 4] for place in (0, 1, 3))
        across, down = second[0] - first[0], second[1] - first[1]
        if across > 4 * abs(down) and across > 5 * math.dist(first, below):
            angles.append(math.atan2(down, across))
    return statistics.median(angles) if len(angles) >= LEAST_IN_COLUMN else 0.0


def _rotated(corner: tuple[float, float], angle: float) -> tuple[float, float]:
    x, y = corner
    return (
        x * math.cos(angle) - y * math.sin(angle),
        x * math.sin(angle) + y * math.cos(angle),
    )


def _box(corners: Sequence[tuple[float, float]], width: int, height: int) -> Box:
    xs = [min(max(x / width, 0.0), 1.0) for x, _ in corners]
    ys = [min(max(y / height, 0.0), 1.0) for _, y in corners]
    return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def _rows(lines: list[Line], size: float) -> list[Row]:
    """Lines that stand beside each other, from the top."""
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and line.middle - statistics.fmean(each.middle for each in rows[-1]) < size / 2:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _blocks(rows: list[Row], size: float) -> Iterator[list[Row]]:
    """Rows that are read from the top, in the order in which they are read."""
    found = _columns(rows, size)
    if found is None:
        yield rows
        return
    first, last, gutter = found
    if first:
        yield from _blocks(rows[:first], size)
    lines = [line for row in rows[first:last] for line in row]
    for side in (
        [line for line in lines if line.right <= gutter],
        [line for line in lines if line.right > gutter],
    ):
        yield from _blocks(_rows(side, size), size)
    if last < len(rows):
        yield from _blocks(rows[last:], size)


def _columns(rows: list[Row], size: float) -> tuple[int, int, float] | None:
    """The longest run of rows that is set in columns, and where the first of them ends."""
    best: tuple[int, int, float] | None = None
    for first in range(len(rows)):
        for last in range(len(rows), first + (best[1] - best[0] if best else 1), -1):
            gutter = _gutter([line for row in rows[first:last] for line in row], size)
            if gutter is not None:
                best = (first, last, gutter)
                break
    return best


def _gutter(lines: list[Line], size: float) -> float | None:
    """Where nothing stands from top to bottom, with running text to both sides."""
    if len(lines) < 2 * LEAST_IN_COLUMN:
        return None
    lines = sorted(lines, key=lambda line: line.left)
    end = lines[0].right
    for number, line in enumerate(lines):
        if (
            line.left - end >= GUTTER * size
            and _is_prose(lines[:number], size)
            and (
                _is_prose(lines[number:], size)
                # There may be further columns.
                or _gutter(lines[number:], size) is not None
            )
        ):
            return end
        end = max(end, line.right)
    return None


def _is_prose(lines: list[Line], size: float) -> bool:
    if len(lines) < LEAST_IN_COLUMN:
        return False
    usual = statistics.median(line.width for line in lines)
    extent = max(line.right for line in lines) - min(line.left for line in lines)
    return usual >= LEAST_WIDE * size and usual >= LEAST_FULL * extent


def _joined(blocks: Iterator[list[Row]], size: float) -> tuple[str, tuple[Piece, ...]]:
    text = ""
    pieces: list[Piece] = []
    for block in blocks:
        text += "\n\n" if text else ""
        for above, row in pairwise([[], *block]):
            if HYPHEN.search(text) and above and row[0].text[0].islower():
                text = text[:-1]
                pieces[-1] = replace(pieces[-1], end=len(text))
            elif above:
                text += _line_end(above, row, size)
            for before, line in pairwise([None, *row]):
                if before is not None:
                    is_cell = line is not None and line.left - before.right >= CELL * size
                    text += BETWEEN_CELLS if is_cell else " "
                assert line is not None
                start, end = len(text), len(text) + len(line.text)
                pieces.append(Piece(start=start, end=end, box=line.box, is_level=line.is_level))
                text += line.text
    return text, tuple(pieces)


def _line_end(above: Row, row: Row, size: float) -> str:
    gap = min(line.top for line in row) - max(line.bottom for line in above)
    return "\n\n" if gap > PARAGRAPH * size else "\n"
