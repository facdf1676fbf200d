"""Pages of a spreadsheet: its rows as lines, as many on a page as are well read together."""

from collections.abc import Iterable, Iterator

from app.documents.document import Page, PageFlag
from app.documents.tables import Row, lines_of

ROWS_ON_PAGE = 50
MOST_CHARACTERS = 6_000
MOST_CELLS = 2_000_000
"""Of a file. What is beyond is left out, and the notice says so."""
MOST_CELL_CHARACTERS = 20_000


def sheet_pages(rows: Iterable[Row], name: str, first: int) -> Iterator[Page]:
    """`name` of the sheet, empty for a file that is a single one; `first` is the page's number."""
    number, held, length, top = first, list[str](), 0, 1
    last_row = 0
    for row, text in lines_of(rows):
        if held and (len(held) >= ROWS_ON_PAGE or length + len(text) > MOST_CHARACTERS):
            yield _page(number, _label(name, top, last_row), held)
            number, held, length = number + 1, [], 0
        if not held:
            top = row
        held.append(text)
        length += len(text) + 1
        last_row = row
    if held:
        is_alone = bool(name) and number == first
        yield _page(number, name if is_alone else _label(name, top, last_row), held)


def hidden_sheet(name: str, number: int) -> Page:
    return Page(number=number, label=name, text="", flags=frozenset({PageFlag.HIDDEN_LEFT_OUT}))


def _label(name: str, top: int, bottom: int) -> str:
    rows = f"row {top}" if top == bottom else f"rows {top}-{bottom}"
    return f"{name}, {rows}" if name else rows.capitalize()


def _page(number: int, label: str, lines: list[str]) -> Page:
    return Page(number=number, label=label, text="\n".join(lines))
