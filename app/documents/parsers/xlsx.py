"""Excel: each sheet as rows of "column: value", with the values that Excel computed last.

Read row by row with lxml: openpyxl brings numpy along when it is imported, and walks through the
million empty rows that one cell far away makes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.documents.archive import Archive
from app.documents.document import Facts, Page
from app.documents.kinds import Kind
from app.documents.markup import (
    Element,
    attribute,
    child,
    descendants,
    drop,
    local,
    member_tree,
    parts,
)
from app.documents.parsers.office import Reference, main_part, references, relation_of, title_of
from app.documents.parsers.source import Source
from app.documents.parsers.xlsx_values import Form, forms_of, shown
from app.documents.sheets import MOST_CELL_CHARACTERS, MOST_CELLS, hidden_sheet, sheet_pages
from app.documents.tables import Row

MOST_COLUMNS = 16_384


def read(source: Source) -> Iterator[Page | Facts]:
    archive = Archive(source.data, source.name)
    main = main_part(archive, "xl/workbook.xml")
    root, links = member_tree(archive, main), references(archive, main)
    if root is None:
        raise KeyError(main)
    properties = child(root, "workbookPr")
    book = _Book(
        archive=archive,
        texts=_shared_texts(archive, _target(links.values(), "sharedStrings")),
        forms=forms_of(member_tree(archive, _target(links.values(), "styles") or "xl/styles.xml")),
        is_1904=properties is not None and attribute(properties, "date1904") in ("1", "true"),
    )
    number = 1
    for sheet in descendants(root, "sheet"):
        link = links.get(relation_of(sheet))
        name = attribute(sheet, "name") or f"Sheet {number}"
        # Pictures of charts are sheets too.
        if link is None or link.kind != "worksheet":
            continue
        if attribute(sheet, "state") in ("hidden", "veryHidden"):
            yield hidden_sheet(name, number)
            number += 1
            continue
        for page in sheet_pages(book.rows(link.target), name, number):
            yield page
            number += 1
    yield Facts(kind=Kind.XLSX, num_pages=0, title=title_of(archive), notice=book.notice())


def _target(links: Iterable[Reference], kind: str) -> str:
    return next((link.target for link in links if link.kind == kind), "")


def _shared_texts(archive: Archive, part: str) -> Sequence[str]:
    """The texts of all cells, each written once."""
    found: list[str] = []
    member = archive.find(part) if part else None
    if member is not None:
        with archive.open(member) as stream:
            for element in parts(stream, archive.name):
                if local(element) == "si":
                    found.append(_text(element))
                    drop(element)
    return found


def _text(element: Element) -> str:
    """Without the readings that stand above Japanese words."""
    pieces = (
        each.text or "" for each in descendants(element, "t") if local(each.getparent()) != "rPh"
    )
    return "".join(pieces)[:MOST_CELL_CHARACTERS]


@dataclass(slots=True, kw_only=True)
class _Book:
    """Owned by `read`. Counts what is read of it."""

    archive: Archive
    texts: Sequence[str]
    forms: Sequence[Form]
    is_1904: bool
    num_cells: int = 0

    def notice(self) -> str:
        if self.num_cells < MOST_CELLS:
            return ""
        return f"{MOST_CELLS:,} cells of it were read, and the rest was left out."

    def rows(self, part: str) -> Iterator[Row]:
        member = self.archive.find(part)
        if member is None:
            raise KeyError(part)
        number = 0
        with self.archive.open(member) as stream:
            for element in parts(stream, self.archive.name):
                if local(element) != "row":
                    continue
                given = attribute(element, "r")
                number = int(given) if given.isdecimal() else number + 1
                cells = self._cells(element)
                drop(element)
                if cells:
                    self.num_cells += len(cells)
                    yield number, [cells.get(place, "") for place in range(max(cells) + 1)]
                if self.num_cells >= MOST_CELLS:
                    return

    def _cells(self, row: Element) -> dict[int, str]:
        """By their column, from 0; those that show nothing are left out."""
        found: dict[int, str] = {}
        place = -1
        for cell in row:
            if local(cell) != "c":
                continue
            place = column_of(attribute(cell, "r"), place + 1)
            if place < MOST_COLUMNS and (value := self._value(cell)):
                found[place] = value
        return found

    def _value(self, cell: Element) -> str:
        kind = attribute(cell, "t", "n")
        if kind == "inlineStr":
            inline = child(cell, "is")
            return "" if inline is None else _text(inline)
        held = child(cell, "v")
        value = "" if held is None else (held.text or "")
        if kind == "s":
            place = int(value) if value.isdecimal() else -1
            return self.texts[place] if 0 <= place < len(self.texts) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind == "n":
            style = attribute(cell, "s", "0")
            place = int(style) if style.isdecimal() else 0
            form = self.forms[place] if place < len(self.forms) else Form.PLAIN
            return shown(value, form, self.is_1904)
        return value.partition("T00:00:00")[0] if kind == "d" else value[:MOST_CELL_CHARACTERS]


def column_of(reference: str, otherwise: int) -> int:
    """Of "AB12", from 0; many programs leave it out."""
    place = 0
    for letter in reference:
        if not "A" <= letter <= "Z":
            break
        place = place * 26 + ord(letter) - 64
    return place - 1 if place else otherwise
