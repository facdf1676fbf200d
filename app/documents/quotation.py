"""A passage of a file as a model was given it, with the place that it was taken from.

It stands with the answer, word for word: it can be shown when the file has changed or gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

LARGEST_PLACE = 10**9
MOST_PATHS = 1_000
MOST_HEADINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """`text` stands in the document with these bytes (`sha256`), from `start` in the text of `page`
    to `end` in that of `page_to`. `label` is what people call the page; `paths` were all files
    with these bytes, of those that were asked."""

    sha256: str
    paths: tuple[str, ...]
    title: str
    page: int
    page_to: int
    label: str
    heading: tuple[str, ...]
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """Of the file, without its folders."""
        return PurePath(self.paths[0].replace("\\", "/")).name if self.paths else ""

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return {
            "sha256": self.sha256,
            "paths": list(self.paths),
            "title": self.title,
            "page": self.page,
            "page_to": self.page_to,
            "label": self.label,
            "heading": list(self.heading),
            "start": self.start,
            "end": self.end,
            "text": self.text,
        }

    @classmethod
    def from_json(cls, found: object) -> "Quotation":
        """Raises ValueError for what `as_json` does not write."""
        if not isinstance(found, Mapping):
            raise ValueError("a quotation is an object")
        page, page_to = _place(found, "page"), _place(found, "page_to")
        start, end = _place(found, "start"), _place(found, "end")
        if not 1 <= page <= page_to or page == page_to and start > end:
            raise ValueError("a quotation ends before it begins")
        return cls(
            sha256=_text(found, "sha256"),
            paths=_texts(found, "paths", MOST_PATHS),
            title=_text(found, "title"),
            page=page,
            page_to=page_to,
            label=_text(found, "label"),
            heading=_texts(found, "heading", MOST_HEADINGS),
            start=start,
            end=end,
            text=_text(found, "text"),
        )


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} of a quotation is a text")
    return value


def _texts(found: Mapping[str, Any], name: str, most: int) -> tuple[str, ...]:
    value = found.get(name, [])
    is_list = isinstance(value, list) and len(value) <= most
    if not is_list or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{name!r} of a quotation is a list of at most {most} texts")
    return tuple(value)


def _place(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    if type(value) is not int or not 0 <= value <= LARGEST_PLACE:
        raise ValueError(f"{name!r} of a quotation is a whole number")
    return value
