"""Plain text and the text of programs: pages of lines, named after their numbers."""

from collections.abc import Iterator

from app.documents.cleaning import clean
from app.documents.document import Facts, Page
from app.documents.encoding import lines
from app.documents.kinds import Kind
from app.documents.parsers.source import Source

USUAL_CHARACTERS = 4_000
"""After so many a page ends at the next empty line."""
MOST_CHARACTERS = 6_000


def read(source: Source) -> Iterator[Page | Facts]:
    number, top, length = 1, 1, 0
    held: list[str] = []
    last = 0
    for last, line in enumerate(lines(source.data, source.encoding), start=1):
        is_break = not line.strip() and length > USUAL_CHARACTERS
        if held and (is_break or length + len(line) > MOST_CHARACTERS):
            if page := _page(number, top, last - 1, held):
                yield page
                number += 1
            held, length, top = [], 0, last
        held.append(_indented(line) if source.kind is Kind.CODE else line)
        length += len(line) + 1
    if page := _page(number, top, last, held):
        yield page
    yield Facts(kind=source.kind, num_pages=0)


def _indented(line: str) -> str:
    return line.expandtabs(4) if "\t" in line else line


def _page(number: int, top: int, bottom: int, held: list[str]) -> Page | None:
    """None: there is nothing but space."""
    text = clean("\n".join(held))
    label = f"Line {top}" if top == bottom else f"Lines {top}-{bottom}"
    return Page(number=number, label=label, text=text) if text else None
