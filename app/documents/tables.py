"""Rows of a table as lines that can be understood alone: "column: value | column: value"."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from app.documents.cleaning import one_line

LOOK_AHEAD = 20
"""Rows among which the names of the columns are looked for."""
MOST_NAME = 80
FIGURE = re.compile(r"[-+(]?[\d.,:/\s%€$£¥'-]+\)?")


class Line(NamedTuple):
    """`row` counts from 1, as the table's own program counts."""

    row: int
    text: str


Row = tuple[int, Sequence[str]]


def lines_of(rows: Iterable[Row], least_columns: int = 2) -> Iterator[Line]:
    """Rows with their numbers, as lines; empty ones are left out. Names of columns are taken from
    the first row that has only names, of at least `least_columns`."""
    cleaned = ((number, [one_line(cell) for cell in cells]) for number, cells in rows)
    filled = (row for row in cleaned if any(row[1]))
    ahead = list(itertools.islice(filled, LOOK_AHEAD))
    place = _place_of_names([cells for _, cells in ahead], least_columns)
    rest = itertools.chain(ahead, filled)
    if place is None:
        for number, cells in rest:
            yield Line(number, plain(cells))
        return
    # A title may stand above.
    for number, cells in itertools.islice(rest, place):
        yield Line(number, plain(cells))
    named, names = next(rest)
    is_alone = True
    for number, cells in rest:
        is_alone = False
        yield Line(number, labelled(names, cells))
    if is_alone:
        yield Line(named, plain(names))


def simple_lines(rows: Sequence[Sequence[str]], has_names: bool = False) -> list[str]:
    """A table within a text. One of two columns is mostly a form, whose rows stand for themselves,
    unless its maker said that the first row has names."""
    if len(rows) < 2:
        return [plain([one_line(cell) for cell in row]) for row in rows if any(row)]
    numbered = list(enumerate(rows, start=1))
    return [line.text for line in lines_of(numbered, least_columns=2 if has_names else 3)]


def plain(cells: Iterable[str]) -> str:
    return " | ".join(cell for cell in cells if cell)


def labelled(names: Sequence[str], cells: Sequence[str]) -> str:
    pairs = itertools.zip_longest(names[: len(cells)], cells, fillvalue="")
    return " | ".join(
        f"{name}: {cell}" if name and name != cell else cell for name, cell in pairs if cell
    )


def _place_of_names(rows: list[list[str]], least_columns: int) -> int | None:
    widest = max((sum(map(bool, row)) for row in rows), default=0)
    for place, row in enumerate(rows):
        named = [cell for cell in row if cell]
        if len(named) < max(least_columns, 0.6 * widest):
            continue
        are_names = len(set(named)) == len(named) and not any(
            FIGURE.fullmatch(cell) or len(cell) > MOST_NAME for cell in named
        )
        return place if are_names else None
    return None
