"""OpenDocument (LibreOffice): texts, sheets and slides out of `content.xml`, piece by piece."""

from collections.abc import Iterator

from app.documents.archive import Archive
from app.documents.blocks import Block, paginate
from app.documents.cleaning import clean, one_line
from app.documents.document import Facts, FileState, Heading, Page, Unreadable
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
from app.documents.parsers.source import Source
from app.documents.sheets import MOST_CELLS, hidden_sheet, sheet_pages
from app.documents.tables import Row, simple_lines

CONTENT = "content.xml"
MOST_REPEATS = 1_000
"""Of a cell: LibreOffice writes the empty rest of a row as one that repeats."""
LEFT_OUT = (
    "tracked-changes",
    "annotation",
    "annotation-end",
    "hidden-text",
    "hidden-paragraph",
    "sequence-decls",
    "forms",
    "shapes",
    "note-citation",
    "bibliography-source",
    "table-of-content-source",
)
UNSEEN = ("hidden-text", "hidden-paragraph")


def read_text(source: Source) -> Iterator[Page | Facts]:
    archive = _opened(source)
    hidden = _hidden_styles(archive)
    yield from paginate(_text_blocks(archive, hidden), "Paragraph")
    yield Facts(kind=Kind.ODT, num_pages=0, title=_title(archive))


def read_sheets(source: Source) -> Iterator[Page | Facts]:
    archive = _opened(source)
    hidden = _hidden_styles(archive)
    number, left = 1, [MOST_CELLS]
    for table in _of_body(archive, "table"):
        name = one_line(attribute(table, "name")) or f"Sheet {number}"
        if attribute(table, "style-name") in hidden:
            yield hidden_sheet(name, number)
            number += 1
        else:
            for page in sheet_pages(_rows(table, hidden, left), name, number):
                yield page
                number += 1
    notice = "" if left[0] > 0 else f"{MOST_CELLS:,} cells were read, and the rest was left out."
    yield Facts(kind=Kind.ODS, num_pages=0, title=_title(archive), notice=notice)


def read_slides(source: Source) -> Iterator[Page | Facts]:
    archive = _opened(source)
    hidden = _hidden_styles(archive)
    for number, slide in enumerate(_of_body(archive, "page"), start=1):
        pieces = list(_slide_pieces(slide, hidden))
        title = next((text for text, is_title in pieces if is_title), "")
        yield Page(
            number=number,
            label=f"Slide {number}",
            text=clean("\n\n".join(text for text, _ in pieces)),
            headings=(Heading(start=0, path=(title,)),) if title and pieces[0][1] else (),
        )
    yield Facts(kind=Kind.ODP, num_pages=0, title=_title(archive))


def _opened(source: Source) -> Archive:
    archive = Archive(source.data, source.name)
    manifest = member_tree(archive, "META-INF/manifest.xml")
    if manifest is not None and any(True for _ in descendants(manifest, "encryption-data")):
        raise Unreadable(
            FileState.NEEDS_PASSWORD,
            f"{source.name} is protected by a password, which only LibreOffice can open: save a"
            " copy without it there.",
        )
    return archive


def _title(archive: Archive) -> str:
    root = member_tree(archive, "meta.xml")
    title = None if root is None else next(descendants(root, "title"), None)
    return one_line(title.text or "") if title is not None else ""


def _hidden_styles(archive: Archive) -> frozenset[str]:
    """Names of the styles whose text, or whose sheet, is not shown."""
    found = set()
    for member in (CONTENT, "styles.xml"):
        if archive.find(member) is None:
            continue
        with archive.open(member) as stream:
            for element in parts(stream, archive.name):
                kind = local(element)
                if kind == "style":
                    if any(_hides(each) for each in element):
                        found.add(attribute(element, "name"))
                elif kind in ("body", "master-styles"):
                    break
                elif kind in ("p", "h", "table-row"):
                    # Styles stand before the text: nothing of that is held here.
                    drop(element)
    return frozenset(found)


def _hides(properties: Element) -> bool:
    return attribute(properties, "display") in ("none", "false") and local(properties) in (
        "text-properties",
        "table-properties",
    )


def _of_body(archive: Archive, kind: str) -> Iterator[Element]:
    """The elements of this kind that no other one of it is round."""
    depth_kinds = {"text", "spreadsheet", "presentation", "drawing"}
    with archive.open(CONTENT) as stream:
        for element in parts(stream, archive.name):
            parent = element.getparent()
            if local(element) == kind and parent is not None and local(parent) in depth_kinds:
                yield element
                drop(element)


def _text_blocks(archive: Archive, hidden: frozenset[str]) -> Iterator[Block]:
    with archive.open(CONTENT) as stream:
        for element in parts(stream, archive.name):
            parent = element.getparent()
            above = None if parent is None else parent.getparent()
            if parent is None or local(parent) != "text" or above is None:
                continue
            if local(above) == "body":
                yield from _blocks(element, hidden)
                drop(element)


def _blocks(element: Element, hidden: frozenset[str], is_listed: bool = False) -> Iterator[Block]:
    kind = local(element)
    if kind in LEFT_OUT:
        if kind in UNSEEN:
            yield Block(text="", hides=True)
    elif attribute(element, "display") == "none":
        yield Block(text="", hides=True)
    elif kind in ("p", "h"):
        pieces: list[str] = []
        notes: list[str] = []
        hides = _gather(element, hidden, pieces, notes)
        text = "".join(pieces)
        level = attribute(element, "outline-level", "1") if kind == "h" else "0"
        yield Block(
            text=f"- {text}" if is_listed and kind == "p" and text.strip() else text,
            level=int(level) if level.isdecimal() else 1,
            follows=is_listed,
            hides=hides,
        )
        for note in notes:
            yield Block(text=f"Note: {note}")
    elif kind == "table":
        rows = [cells for _, cells in _rows(element, hidden, [MOST_CELLS])]
        has_names = child(element, "table-header-rows") is not None
        for number, line in enumerate(simple_lines(rows, has_names)):
            yield Block(text=line, follows=number > 0)
    else:
        for each in element:
            yield from _blocks(each, hidden, is_listed or kind == "list")


def _gather(element: Element, hidden: frozenset[str], pieces: list[str], notes: list[str]) -> bool:
    """The text of a paragraph into `pieces`. Whether something in it is hidden."""
    if attribute(element, "style-name") in hidden:
        return any(text.strip() for text in element.itertext())
    hides = False
    pieces.append(element.text or "")
    for each in element:
        kind = local(each)
        if kind in LEFT_OUT:
            hides = hides or kind in UNSEEN
        elif kind == "s":
            count = attribute(each, "c", "1")
            pieces.append(" " * min(int(count) if count.isdecimal() else 1, 100))
        elif kind == "tab":
            pieces.append(" ")
        elif kind == "line-break":
            pieces.append("\n")
        elif kind == "note":
            body = child(each, "note-body")
            notes.append("" if body is None else one_line(" ".join(body.itertext())))
        else:
            hides = _gather(each, hidden, pieces, notes) or hides
            if kind == "p":
                pieces.append("\n")
        pieces.append(each.tail or "")
    return hides


def _rows(table: Element, hidden: frozenset[str], left: list[int]) -> Iterator[Row]:
    """With their numbers; `left` is how many cells may still be read."""
    number = 1
    for row in descendants(table, "table-row"):
        repeats = _count(row, "number-rows-repeated")
        if left[0] > 0:
            cells: list[str] = []
            for cell in row:
                if local(cell) not in ("table-cell", "covered-table-cell"):
                    continue
                words = _cell(cell, hidden)
                columns = _count(cell, "number-columns-repeated")
                cells += [words] * min(columns, MOST_REPEATS if words else 64)
            if any(cells):
                for place in range(number, number + min(repeats, MOST_REPEATS)):
                    left[0] -= sum(map(bool, cells))
                    yield place, cells
        number += repeats


def _count(element: Element, name: str) -> int:
    given = attribute(element, name, "1")
    return max(int(given), 1) if given.isdecimal() else 1


def _cell(cell: Element, hidden: frozenset[str]) -> str:
    found: list[str] = []
    for paragraph in cell:
        if local(paragraph) in ("p", "h", "list"):
            pieces: list[str] = []
            _gather(paragraph, hidden, pieces, [])
            found.append("".join(pieces))
    return " ".join(found)


def _slide_pieces(slide: Element, hidden: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Texts of a slide, and of each whether it is the title."""
    for shape in slide:
        kind = local(shape)
        words = "\n".join(
            text for each in descendants(shape, "p") if (text := _paragraph(each, hidden))
        )
        if not words:
            continue
        if kind == "notes":
            yield f"Notes: {words}", False
        else:
            is_title = attribute(shape, "class") == "title"
            yield (one_line(words) if is_title else words), is_title


def _paragraph(element: Element, hidden: frozenset[str]) -> str:
    pieces: list[str] = []
    _gather(element, hidden, pieces, [])
    return one_line("".join(pieces))
