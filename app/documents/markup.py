"""XML and HTML of strangers through lxml: nothing declared is expanded, nothing is fetched."""

import re
from collections.abc import Iterator
from typing import IO, Any

from lxml import etree, html

from app.documents.archive import Archive
from app.documents.document import FileState, Unreadable

Element = Any
"""One of lxml's, which has no types."""

MOST_ENTITY_BYTES = 1_000_000
"""What the entities of a file may stand for, all together; office programs write none."""
START_BYTES = 64_000
"""Where declarations stand."""
ENTITY = re.compile(rb"""<!ENTITY\s+(?:%\s+)?([^\s"']+)\s+(["'])(.*?)\2""", re.DOTALL)
SAFE = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def local(element: Element) -> str:
    """Its name without the namespace, which differs between "strict" and usual office files."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str, default: str = "") -> str:
    """Of whatever namespace."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return default


def child(element: Element | None, *path: str) -> Element | None:
    """Down a path of local names, the first of each."""
    for name in path:
        if element is None:
            return None
        element = next((each for each in element if local(each) == name), None)
    return element


def descendants(element: Element, name: str) -> Iterator[Element]:
    yield from element.iter(f"{{*}}{name}", name)


def parts(stream: IO[bytes], name: str) -> Iterator[Element]:
    """Each element as it ends, and the tree as far as it has been read. The taker lets go of what
    it has used with `drop`. `stream` can be read twice. Raises Unreadable."""
    check_entities(stream.read(START_BYTES), name)
    stream.seek(0)
    try:
        reader = etree.iterparse(stream, remove_comments=True, remove_pis=True, **SAFE)
        yield from (element for _, element in reader)
    except etree.LxmlError as error:
        raise _broken(name) from error


def drop(element: Element) -> None:
    """Free it and what stood before it: what is held stays small however long the file is."""
    element.clear()
    parent = element.getparent()
    if parent is not None:
        for before in list(element.itersiblings(preceding=True)):
            parent.remove(before)


def tree(data: bytes, name: str) -> Element:
    """A small part as a whole. Raises Unreadable."""
    check_entities(data[:START_BYTES], name)
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, **SAFE)
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError) as error:
        raise _broken(name) from error


def member_tree(archive: Archive, member: str) -> Element | None:
    """A part of an archive as a tree. None: it has none of this name."""
    found = archive.find(member)
    return None if found is None else tree(archive.read(found), archive.name)


def page_tree(text: str, name: str) -> Element | None:
    """A web page. None: there is nothing in it. Raises Unreadable."""
    # As bytes: lxml refuses a text that declares an encoding, though it is one no more.
    parser = html.HTMLParser(encoding="utf-8", remove_pis=True, no_network=True, huge_tree=False)
    try:
        return html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:
        return None
    except (etree.LxmlError, ValueError) as error:
        raise _broken(name) from error


def check_entities(start: bytes, name: str) -> None:
    """Raises Unreadable when what the beginning of a file declares would grow into much when it is
    read. libxml2 has a limit too, and gives up without a figure."""
    # In UTF-16 every other byte is a zero.
    plain = start.replace(b"\0", b"")
    contents = {
        found[1].decode("latin-1"): found[3].decode("latin-1") for found in ENTITY.finditer(plain)
    }
    size = max((expanded_size(each, contents) for each in contents), default=0)
    if size > MOST_ENTITY_BYTES:
        raise Unreadable(
            FileState.TOO_LARGE,
            f"{name} declares pieces of text that grow to {size / 1e6:,.0f} MB when they are put"
            f" in; {MOST_ENTITY_BYTES / 1e6:.0f} MB is the limit.",
        )


def expanded_size(entity: str, contents: dict[str, str]) -> int:
    """Characters that an entity stands for; without an end counts as more than any limit."""
    sizes: dict[str, int] = {}
    open_now: set[str] = set()

    def size_of(one: str) -> int:
        if one in open_now:
            return 10**12
        if one not in sizes:
            open_now.add(one)
            pieces = contents.get(one, "").split("&")
            sizes[one] = len(pieces[0])
            for piece in pieces[1:]:
                inner, _, rest = piece.partition(";")
                sizes[one] += size_of(inner) + len(rest)
            open_now.discard(one)
        return sizes[one]

    return size_of(entity)


def _broken(name: str) -> Unreadable:
    return Unreadable(
        FileState.DAMAGED,
        f"{name} is damaged inside: open it with the program that made it and save it anew.",
    )
