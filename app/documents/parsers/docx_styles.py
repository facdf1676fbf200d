"""What Word's styles say of a paragraph: whether it is a heading, and whether it is seen."""

import re
from collections.abc import Mapping

from app.documents.markup import Element, attribute, child, descendants
from app.documents.parsers.office import is_on

HEADING_NAME = re.compile(r"heading ([1-9])$", re.IGNORECASE)
MOST_TINY = 4
"""In half points: no letter of two points is read by anybody."""
MOST_STEPS = 12
"""From a style to what it is based on."""


class Styles:
    """Of one document. `root` is its part of styles, if it has one."""

    def __init__(self, root: Element | None) -> None:
        self._styles: Mapping[str, Element] = (
            {}
            if root is None
            else {attribute(each, "styleId"): each for each in descendants(root, "style")}
        )

    def level(self, style: str, properties: Element | None) -> int:
        """Of a heading, 1 the outermost; 0: it is none."""
        own = _outline_level(properties)
        if own is not None:
            return own
        for each in self._line(style):
            found = _outline_level(child(each, "pPr"))
            if found is not None:
                return found
            name = child(each, "name")
            named = HEADING_NAME.match(attribute(name, "val")) if name is not None else None
            if named:
                return int(named[1])
            if name is not None and attribute(name, "val").lower() == "title":
                return 1
        # A file without styles still names them.
        named = re.fullmatch(r"[Hh]eading([1-9])", style)
        return int(named[1]) if named else 0

    def numbering(self, style: str) -> Element | None:
        """The `numPr` of paragraphs in this style, as numbered headings have it."""
        found = (child(each, "pPr", "numPr") for each in self._line(style))
        return next((each for each in found if each is not None), None)

    def is_hidden(self, properties: Element | None, style: str, on_white: bool) -> bool:
        """Whether a run is not shown. `style` is that of its paragraph."""
        own = child(properties, "rStyle")
        lines = [*self._line(attribute(own, "val") if own is not None else ""), *self._line(style)]
        layers = [properties, *(child(each, "rPr") for each in lines)]
        if is_on(_first(layers, "vanish")):
            return True
        size = _first(layers, "sz")
        if size is not None and _number(size, 24) <= MOST_TINY:
            return True
        color = _first(layers, "color")
        is_white = color is not None and attribute(color, "val").upper() == "FFFFFF"
        return (
            is_white
            and on_white
            and not any(
                self.is_shaded(layer) or is_on(child(layer, "highlight")) for layer in layers
            )
        )

    def is_shaded(self, properties: Element | None) -> bool:
        """Whether the ground has a colour other than that of paper."""
        shade = child(properties, "shd")
        fill = attribute(shade, "fill").upper() if shade is not None else ""
        return fill not in ("", "AUTO", "FFFFFF")

    def _line(self, style: str) -> list[Element]:
        """A style and those that it is based on."""
        found: list[Element] = []
        while style in self._styles and len(found) < MOST_STEPS:
            found.append(self._styles[style])
            based = child(found[-1], "basedOn")
            style = attribute(based, "val") if based is not None else ""
        return found


def _first(layers: list[Element | None], name: str) -> Element | None:
    found = (child(layer, name) for layer in layers)
    return next((each for each in found if each is not None), None)


def _outline_level(properties: Element | None) -> int | None:
    found = child(properties, "outlineLvl")
    if found is None:
        return None
    level = _number(found, 9)
    return level + 1 if level < 9 else 0


def _number(element: Element, otherwise: int) -> int:
    given = attribute(element, "val")
    return int(given) if given.isdecimal() else otherwise
