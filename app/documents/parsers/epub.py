"""E-books: the chapters in the order of the spine, each a part of its own."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from app.documents.archive import Archive
from app.documents.blocks import Block, paginate
from app.documents.cleaning import one_line
from app.documents.document import Facts, FileState, Page, Unreadable
from app.documents.encoding import encoding_of
from app.documents.kinds import Kind
from app.documents.markup import Element, attribute, descendants, local, member_tree, page_tree
from app.documents.parsers import html
from app.documents.parsers.source import Source

FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Ways in which only fonts are hidden; the text is plain."""


def read(source: Source) -> Iterator[Page | Facts]:
    archive = Archive(source.data, source.name)
    _refuse_locked(archive)
    container = member_tree(archive, "META-INF/container.xml")
    first = None if container is None else next(descendants(container, "rootfile"), None)
    if first is None:
        raise KeyError("rootfile")
    place = unquote(attribute(first, "full-path"))
    book = member_tree(archive, place)
    if book is None:
        raise KeyError(place)
    title = next((one_line(each.text or "") for each in descendants(book, "title")), "")
    yield from paginate(_blocks(archive, book, posixpath.dirname(place)), "Part")
    yield Facts(kind=Kind.EPUB, num_pages=0, title=title)


def _refuse_locked(archive: Archive) -> None:
    locks = member_tree(archive, "META-INF/encryption.xml")
    methods = (
        []
        if locks is None
        else [attribute(each, "Algorithm") for each in descendants(locks, "EncryptionMethod")]
    )
    if any(method not in FONTS for method in methods):
        raise Unreadable(
            FileState.UNSUPPORTED,
            f"{archive.name} is locked by its shop (DRM): only the reader of the shop can open it.",
        )


def _blocks(archive: Archive, book: Element, folder: str) -> Iterator[Block]:
    chapters = {
        attribute(each, "id"): each
        for each in descendants(book, "item")
        if "html" in attribute(each, "media-type")
    }
    number = 0
    for each in descendants(book, "itemref"):
        item = chapters.get(attribute(each, "idref"))
        # A table of contents repeats every heading and says nothing.
        if item is None or "nav" in attribute(item, "properties").split():
            continue
        target = unquote(attribute(item, "href")).partition("#")[0]
        member = archive.find(posixpath.normpath(posixpath.join(folder, target)))
        if member is None:
            continue
        number += 1
        yield from _chapter(archive, member, number)


def _chapter(archive: Archive, member: str, number: int) -> Iterator[Block]:
    data = archive.read(member)
    root = page_tree(html.text_of(data, encoding_of(data) or "utf-8"), archive.name)
    found = [] if root is None or _is_contents(root) else list(html.blocks(root))
    filled = [block for block in found if block.text.strip()]
    if filled:
        name = next((block.text for block in filled if block.level), "") or _title(root)
        yield replace(filled[0], begins=name or f"Part {number}")
        yield from filled[1:]


def _is_contents(root: Element) -> bool:
    """A page of a table of contents: little but links."""
    words = sum(_num_words(each) for each in root.iter("body"))
    named = sum(_num_words(each) for each in root.iter("h1", "h2", "h3"))
    linked = sum(_num_words(each) for each in root.iter("a"))
    return linked > 0.8 * (words - named) > 0


def _num_words(element: Element) -> int:
    return len(" ".join(element.itertext()).split())


def _title(root: Element | None) -> str:
    found = () if root is None else root.iter("title")
    return next((one_line(each.text or "") for each in found if local(each)), "")
