"""What docx and pptx have in common: parts that refer to each other, and the file's own title."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.documents.archive import Archive
from app.documents.cleaning import one_line
from app.documents.markup import Element, attribute, child, descendants, local, member_tree


@dataclass(frozen=True, slots=True)
class Reference:
    """From one part to another; `kind` is the last word of the type that the file names."""

    kind: str
    target: str


def references(archive: Archive, part: str) -> Mapping[str, Reference]:
    """By their ids. What lies outside of the file is left out: nothing is fetched."""
    folder, name = posixpath.split(part)
    root = member_tree(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    if root is None:
        return {}
    return {
        attribute(each, "Id"): Reference(
            attribute(each, "Type").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, attribute(each, "Target"))).lstrip("/"),
        )
        for each in descendants(root, "Relationship")
        if attribute(each, "TargetMode") != "External"
    }


def relation_of(element: Element) -> str:
    """The id of its part, which stands beside one of its own."""
    found = (str(value) for key, value in element.attrib.items() if str(key).endswith("}id"))
    return next(found, "")


def main_part(archive: Archive, usual: str) -> str:
    """The one that the file says is the document."""
    found = (
        each.target for each in references(archive, "").values() if each.kind == "officeDocument"
    )
    return next((part for part in found if archive.find(part)), usual)


def title_of(archive: Archive) -> str:
    root = member_tree(archive, "docProps/core.xml")
    title = child(root, "title")
    return one_line(title.text or "") if title is not None else ""


def is_on(element: Element | None) -> bool:
    """A switch is on when it is there and does not say otherwise."""
    return element is not None and attribute(element, "val", "1") not in ("0", "false", "off")


def shown_choice(element: Element) -> Iterator[Element]:
    """The children, and of what is there in two forms the first."""
    for each in element:
        if local(each) == "AlternateContent":
            choice = child(each, "Choice")
            if choice is None:
                choice = child(each, "Fallback")
            if choice is not None:
                yield from choice
        else:
            yield each
