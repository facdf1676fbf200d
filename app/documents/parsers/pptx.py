"""PowerPoint: a page for each slide, with the speaker's notes below it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.documents.archive import Archive
from app.documents.cleaning import clean, one_line
from app.documents.document import Facts, Heading, Page, PageFlag
from app.documents.kinds import Kind
from app.documents.markup import (
    Element,
    attribute,
    child,
    descendants,
    local,
    member_tree,
)
from app.documents.parsers.office import main_part, references, relation_of, shown_choice, title_of
from app.documents.parsers.source import Source
from app.documents.tables import simple_lines

TITLES = ("title", "ctrTitle")
NUMBERS = ("sldNum", "dt", "ftr", "hdr")
"""What PowerPoint puts on each slide by itself."""


def read(source: Source) -> Iterator[Page | Facts]:
    archive = Archive(source.data, source.name)
    main = main_part(archive, "ppt/presentation.xml")
    root, links = member_tree(archive, main), references(archive, main)
    if root is None:
        raise KeyError(main)
    targets = [
        links[relation_of(each)].target
        for each in descendants(root, "sldId")
        if relation_of(each) in links
    ]
    title = title_of(archive)
    yield Facts(kind=Kind.PPTX, num_pages=len(targets), title=title)
    for number, target in enumerate(targets, start=1):
        yield _slide_page(archive, target, number)
    yield Facts(kind=Kind.PPTX, num_pages=len(targets), title=title)


@dataclass(slots=True)
class _Slide:
    """Gathered from the shapes of one slide. Owned by `_slide_page`."""

    title: str = ""
    pieces: list[str] = field(default_factory=list)
    hides: bool = False


def _slide_page(archive: Archive, part: str, number: int) -> Page:
    root = member_tree(archive, part)
    slide = _Slide()
    label = f"Slide {number}"
    if root is not None and attribute(root, "show", "1") in ("0", "false"):
        return Page(
            number=number, label=label, text="", flags=frozenset({PageFlag.HIDDEN_LEFT_OUT})
        )
    if root is not None:
        _gather(child(root, "cSld", "spTree"), slide)
    for link in references(archive, part).values():
        if link.kind == "notesSlide":
            notes = _Slide()
            found = member_tree(archive, link.target)
            _gather(child(found, "cSld", "spTree"), notes)
            if notes.pieces:
                slide.pieces.append("Notes: " + "\n\n".join(notes.pieces))
        elif (
            link.kind == "diagramData" and (found := member_tree(archive, link.target)) is not None
        ):
            slide.pieces.append("\n".join(_paragraphs(found)))
    text = clean("\n\n".join([*([slide.title] if slide.title else []), *slide.pieces]))
    return Page(
        number=number,
        label=label,
        text=text,
        headings=(Heading(start=0, path=(slide.title,)),) if slide.title else (),
        flags=frozenset({PageFlag.HIDDEN_LEFT_OUT} if slide.hides else ()),
    )


def _gather(tree: Element | None, slide: _Slide) -> None:
    for shape in () if tree is None else shown_choice(tree):
        kind = local(shape)
        if kind not in ("sp", "grpSp", "graphicFrame"):
            continue
        if any(_is_hidden(each) for head in shape for each in head if local(each) == "cNvPr"):
            slide.hides = slide.hides or any(True for _ in descendants(shape, "t"))
        elif kind == "grpSp":
            _gather(shape, slide)
        elif kind == "graphicFrame":
            for table in descendants(shape, "tbl"):
                slide.pieces.append("\n".join(_table(table)))
        else:
            _take_shape(shape, slide)


def _is_hidden(properties: Element) -> bool:
    return attribute(properties, "hidden", "0") in ("1", "true")


def _take_shape(shape: Element, slide: _Slide) -> None:
    place = child(shape, "nvSpPr", "nvPr", "ph")
    role = attribute(place, "type") if place is not None else ""
    if role in NUMBERS or role == "sldImg":
        return
    lines = list(_paragraphs(shape))
    if role in TITLES and not slide.title:
        slide.title = one_line(" ".join(lines))
    elif lines:
        slide.pieces.append("\n".join(lines))


def _paragraphs(element: Element) -> Iterator[str]:
    for paragraph in descendants(element, "p"):
        pieces = []
        for each in paragraph.iter():
            if local(each) == "t":
                pieces.append(each.text or "")
            elif local(each) in ("br", "tab"):
                pieces.append(" ")
        if text := one_line("".join(pieces)):
            yield text


def _table(table: Element) -> list[str]:
    properties = child(table, "tblPr")
    has_names = properties is not None and attribute(properties, "firstRow") in ("1", "true")
    rows = [
        [" ".join(_paragraphs(cell)) for cell in row if local(cell) == "tc"]
        for row in table
        if local(row) == "tr"
    ]
    return simple_lines(rows, has_names)
