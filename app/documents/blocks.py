"""From the paragraphs and headings of a running text to pages that a citation can name.

Formats like Word's have no pages on the disk and none are invented: a page is a stretch of about
one printed page, cut at a heading where there is one, and named after it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.documents.cleaning import clean, one_line
from app.documents.document import Heading, Page, PageFlag

USUAL_CHARACTERS = 3_000
"""With so many a page ends at the next heading."""
MOST_CHARACTERS = 6_000
MOST_LABEL = 120
SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph; with a `level` (1 is outermost) a heading; with `begins` the first of a part
    that has this name and pages of its own. `follows`: it stands directly below the one before, as
    a line of a list or a table does. `hides`: something unseen was left out here."""

    text: str
    level: int = 0
    begins: str = ""
    follows: bool = False
    hides: bool = False


def paginate(blocks: Iterable[Block], unit: str, first: int = 1) -> Iterator[Page]:
    """`unit` names what is counted where no heading stands: "Paragraphs 1-20". Every block counts
    as one; `first` is the number of the page."""
    draft = Draft(unit, first)
    for block in blocks:
        yield from draft.add(block)
    yield from draft.end()


class Draft:
    """The page being written. Owned by `paginate`."""

    def __init__(self, unit: str, number: int) -> None:
        self._unit = unit
        self._number = number
        self._place = 0
        self._part = ""
        self._path: list[tuple[int, str]] = []
        self._uses: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._hides = False
        self._from = self._place + 1

    def add(self, block: Block) -> Iterator[Page]:
        if block.begins:
            yield from self.end()
            self._part, self._path = one_line(block.begins)[:MOST_LABEL], []
        text = one_line(block.text) if block.level else clean(block.text)
        self._hides = self._hides or block.hides
        if not text:
            self._place += 1
            return
        long_enough = USUAL_CHARACTERS if block.level else MOST_CHARACTERS - len(text)
        if self._length > max(long_enough, 0):
            yield from self.end()
        self._place += 1
        if block.level:
            self._head(block.level, text)
        for number, piece in enumerate(_cut(text)):
            if number:
                yield from self.end(goes_on=True)
            self._write(piece, block.follows)

    def end(self, goes_on: bool = False) -> Iterator[Page]:
        if self._pieces or self._hides:
            yield self._page()
            self._number += 1
        self._clear()
        if goes_on:
            self._from = self._place

    def _head(self, level: int, text: str) -> None:
        kept = [(above, name) for above, name in self._path if above < level]
        self._path = [*kept, (level, text)]
        start = self._length + 2 if self._pieces else 0
        self._headings.append(Heading(start=start, path=self._names()))

    def _write(self, text: str, follows: bool) -> None:
        if not self._pieces:
            # What the page before stood under still holds.
            if not self._headings and self._path:
                self._headings.append(Heading(start=0, path=self._names()))
        else:
            self._pieces.append("\n" if follows and not self._heads_here() else "\n\n")
            self._length += len(self._pieces[-1])
        self._pieces.append(text)
        self._length += len(text)

    def _heads_here(self) -> bool:
        """A heading was announced for just this place, with an empty line before it."""
        return bool(self._headings) and self._headings[-1].start == self._length + 2

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._path)

    def _page(self) -> Page:
        return Page(
            number=self._number,
            label=self._label(),
            text="".join(self._pieces),
            headings=tuple(self._headings),
            flags=frozenset({PageFlag.HIDDEN_LEFT_OUT} if self._hides else ()),
        )

    def _label(self) -> str:
        name = self._part or next((heading.path[-1] for heading in self._headings), "")
        if not name:
            if self._from >= self._place:
                return f"{self._unit} {self._from}"
            return f"{self._unit}s {self._from}-{self._place}"
        name = name[:MOST_LABEL]
        uses = self._uses[name] = self._uses.get(name, 0) + 1
        return name if uses == 1 else f"{name} ({uses})"


def _cut(text: str) -> Iterator[str]:
    """A text of no more than a page as it is; a longer one at the ends of its sentences."""
    while len(text) > MOST_CHARACTERS:
        ends = [match.end() for match in SENTENCE_END.finditer(text, 0, MOST_CHARACTERS)]
        space = text.rfind(" ", 0, MOST_CHARACTERS) + 1
        end = ends[-1] if ends else space or MOST_CHARACTERS
        yield text[:end].rstrip()
        text = text[end:].lstrip()
    if text:
        yield text
