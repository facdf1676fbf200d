"""The numbers that Word counts by itself and does not write down: "4.2", "c)", "IV."."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from app.documents.markup import Element, attribute, child, descendants

MOST_LEVELS = 9
ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
         (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class _Level:
    """`form` is one of Word's names, `pattern` something like "%1.%2."."""

    start: int = 1
    form: str = "decimal"
    pattern: str = ""


class Numbers:
    """Of one document, whose paragraphs are asked about in their order. Owned by its reader."""

    def __init__(self, root: Element | None) -> None:
        """`root` is the part of numberings, if there is one."""
        self._lists: dict[str, Mapping[int, _Level]] = {}
        self._list_of: dict[str, str] = {}
        self._counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        if root is None:
            return
        for each in descendants(root, "abstractNum"):
            self._lists[attribute(each, "abstractNumId")] = {
                _whole(attribute(level, "ilvl"), 0): _level(level)
                for level in descendants(each, "lvl")
            }
        for each in descendants(root, "num"):
            self._list_of[attribute(each, "numId")] = _given(each, "abstractNumId")

    def next(self, properties: Element) -> str:
        """What stands before a paragraph with these `numPr`: its number, "-" for a bullet, or
        nothing."""
        name = self._list_of.get(_given(properties, "numId"), "")
        levels, place = self._lists.get(name, {}), _whole(_given(properties, "ilvl"), 0)
        level = levels.get(place)
        if level is None:
            return ""
        counts = self._counts[name]
        counts[place] = counts.get(place, level.start - 1) + 1
        for deeper in range(place + 1, MOST_LEVELS):
            counts.pop(deeper, None)
        if level.form == "bullet":
            return "-"
        if level.form == "none":
            return ""

        def shown(found: re.Match[str]) -> str:
            above = int(found[1]) - 1
            held = levels.get(above, _Level())
            return numeral(counts.get(above, held.start), held.form)

        return PLACE.sub(shown, level.pattern)


def numeral(number: int, form: str) -> str:
    """A number in one of Word's forms; one that is not known here is decimal."""
    if form in ("lowerLetter", "upperLetter") and number > 0:
        # After z comes aa, then bb.
        text = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 20)
    elif form in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        text = ""
        for value, letters in ROMAN:
            text += letters * (number // value)
            number %= value
    elif form == "decimalZero":
        return f"{number:02d}"
    else:
        return str(number)
    return text.upper() if form.startswith("upper") else text


def _level(element: Element) -> _Level:
    return _Level(
        start=_whole(_given(element, "start"), 1),
        form=_given(element, "numFmt") or "decimal",
        pattern=_given(element, "lvlText"),
    )


def _given(element: Element, name: str) -> str:
    found = child(element, name)
    return attribute(found, "val") if found is not None else ""


def _whole(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else otherwise
