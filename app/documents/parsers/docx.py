"""Word: the body in its order, one paragraph at a time, without what Word does not show.

Read with lxml alone: python-docx holds the whole file as a tree, and knows neither hidden text nor
deletions, notes or text boxes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.documents.archive import Archive
from app.documents.blocks import Block, paginate
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
from app.documents.parsers.docx_numbers import Numbers
from app.documents.parsers.docx_styles import Styles
from app.documents.parsers.office import (
    is_on,
    main_part,
    references,
    shown_choice,
    title_of,
)
from app.documents.parsers.source import Source
from app.documents.tables import simple_lines

LEFT_OUT = ("del", "moveFrom", "delText", "instrText", "rPr", "pPr", "fldChar")
NOTES = ("footnoteReference", "endnoteReference")


def read(source: Source) -> Iterator[Page | Facts]:
    archive = Archive(source.data, source.name)
    main = main_part(archive, "word/document.xml")
    body = _Body(archive, main)
    yield from paginate(body.blocks(main), "Paragraph")
    yield Facts(kind=Kind.DOCX, num_pages=0, title=title_of(archive))


@dataclass(slots=True)
class _Line:
    """What is gathered of one paragraph. Owned by `_Body.paragraph`."""

    text: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    hides: bool = False


class _Body:
    def __init__(self, archive: Archive, main: str) -> None:
        self._archive = archive
        self._references = references(archive, main)
        self._styles = Styles(self._part("styles"))
        self._numbers = Numbers(self._part("numbering"))
        self._notes: Mapping[str, Element] = {
            f"{kind}{attribute(each, 'id')}": each
            for kind in ("footnote", "endnote")
            if (root := self._part(f"{kind}s")) is not None
            for each in descendants(root, kind)
        }

    def _part(self, kind: str) -> Element | None:
        target = next((each.target for each in self._references.values() if each.kind == kind), "")
        return member_tree(self._archive, target) if target else None

    def blocks(self, main: str) -> Iterator[Block]:
        found = self._archive.find(main)
        if found is None:
            raise KeyError(main)
        with self._archive.open(found) as stream:
            for element in parts(stream, self._archive.name):
                parent = element.getparent()
                if parent is None or local(parent) != "body":
                    continue
                yield from self.of(element)
                drop(element)
        for kind in ("header", "footer"):
            yield from self._margins(kind)

    def _margins(self, kind: str) -> Iterator[Block]:
        """What stands at the edge of every page, once, after everything else."""
        seen: set[str] = set()
        for each in self._references.values():
            root = member_tree(self._archive, each.target) if each.kind == kind else None
            for element in () if root is None else root:
                for block in self.of(element):
                    if block.text not in seen and len(block.text.strip()) > 3:
                        seen.add(block.text)
                        yield Block(text=block.text, hides=block.hides)

    def of(self, element: Element) -> Iterator[Block]:
        """The blocks of a paragraph, a table, or what is wrapped round them."""
        kind = local(element)
        if kind == "p":
            yield from self.paragraph(element)
        elif kind == "tbl":
            yield from self._table(element)
        elif kind in (
            "sdt",
            "sdtContent",
            "ins",
            "moveTo",
            "customXml",
            "smartTag",
            "txbxContent",
            "footnote",
            "endnote",
            "AlternateContent",
            "Choice",
        ):
            for each in shown_choice(element):
                yield from self.of(each)
        elif kind in ("del", "moveFrom"):
            yield Block(text="", hides=True)

    def paragraph(self, element: Element, in_white: bool = True) -> Iterator[Block]:
        properties = child(element, "pPr")
        style = (
            attribute(found, "val") if (found := child(properties, "pStyle")) is not None else ""
        )
        # White letters on a coloured ground are seen.
        ground = in_white and not self._styles.is_shaded(properties)
        line = _Line()
        self._gather(element, style, ground, line)
        numbered = child(properties, "numPr")
        is_listed = numbered is not None
        if numbered is None:
            numbered = self._styles.numbering(style)
        level = self._styles.level(style, properties)
        text = "".join(line.text)
        if numbered is not None and text.strip() and (before := self._numbers.next(numbered)):
            text = f"{before} {text}"
        yield Block(
            text=text,
            level=level if text.strip() else 0,
            follows=is_listed and not level,
            hides=line.hides,
        )
        for note in line.notes:
            if (found := self._notes.get(note)) is not None:
                words = " ".join(block.text for each in found for block in self.of(each))
                yield Block(text=f"Note: {words}")
        for box in line.boxes:
            yield from self.of(box)

    def _gather(self, element: Element, style: str, ground: bool, line: _Line) -> None:
        for each in shown_choice(element):
            kind = local(each)
            if kind == "r":
                properties = child(each, "rPr")
                if self._styles.is_hidden(properties, style, ground):
                    line.hides = line.hides or any(True for _ in descendants(each, "t"))
                else:
                    self._gather(each, style, ground, line)
            elif kind in ("t", "noBreakHyphen"):
                line.text.append((each.text or "") if kind == "t" else "-")
            elif kind == "tab":
                line.text.append(" ")
            elif kind in ("br", "cr"):
                line.text.append("\n")
            elif kind in ("oMath", "oMathPara"):
                line.text += [found.text or "" for found in descendants(each, "t")]
            elif kind in NOTES:
                line.notes.append(f"{kind.removesuffix('Reference')}{attribute(each, 'id')}")
            elif kind in ("drawing", "pict", "object"):
                line.boxes += descendants(each, "txbxContent")
            elif kind in LEFT_OUT:
                line.hides = line.hides or kind in ("del", "moveFrom")
            else:
                self._gather(each, style, ground, line)

    def _table(self, table: Element) -> Iterator[Block]:
        hides = False
        rows: list[list[str]] = []
        has_names = False
        is_styled = child(table, "tblPr", "tblStyle") is not None
        for row in _within(table, "tr"):
            properties = child(row, "trPr")
            if is_on(child(properties, "hidden")) or child(properties, "del") is not None:
                hides = True
                continue
            has_names = has_names or not rows and is_on(child(properties, "tblHeader"))
            cells: list[str] = []
            for cell in _within(row, "tc"):
                shaded = is_styled or self._styles.is_shaded(child(cell, "tcPr"))
                blocks = [
                    block for each in shown_choice(cell) for block in self._in_cell(each, shaded)
                ]
                hides = hides or any(block.hides for block in blocks)
                cells.append(" ".join(block.text for block in blocks if block.text.strip()))
                cells += [""] * (_span(cell) - 1)
            rows.append(cells)
        lines = simple_lines(rows, has_names)
        for number, text in enumerate(lines):
            yield Block(text=text, follows=number > 0, hides=hides and number == 0)
        if hides and not lines:
            yield Block(text="", hides=True)

    def _in_cell(self, element: Element, is_shaded: bool) -> Iterator[Block]:
        if local(element) == "p":
            yield from self.paragraph(element, in_white=not is_shaded)
        else:
            yield from self.of(element)


def _within(element: Element, kind: str) -> Iterator[Element]:
    """Rows of a table and cells of a row, also where a form field or a change is wrapped round."""
    for each in element:
        if local(each) == kind:
            yield each
        elif local(each) in ("sdt", "sdtContent", "ins", "customXml"):
            yield from _within(each, kind)


def _span(cell: Element) -> int:
    span = child(cell, "tcPr", "gridSpan")
    given = attribute(span, "val") if span is not None else ""
    return min(int(given), 64) if given.isdecimal() else 1
