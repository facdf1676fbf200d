"""A passage of a file as a model was given it, with the place that it was taken from.

It stands with the answer, word for word: it can be shown when the file has changed or gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from app.documents.record import Record

MOST_PATHS = 1_000
MOST_HEADINGS = 100


def name_of(paths: Sequence[str]) -> str:
    """Of a file with these paths, without its folders; empty where there is none."""
    return PurePath(paths[0].replace("\\", "/")).name if paths else ""


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
        return name_of(self.paths)

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
        record = Record.of(found, "a quotation")
        page, page_to = record.number("page"), record.number("page_to")
        start, end = record.number("start"), record.number("end")
        if not 1 <= page <= page_to or page == page_to and start > end:
            raise ValueError("a quotation ends before it begins")
        return cls(
            sha256=record.text("sha256"),
            paths=record.texts("paths", MOST_PATHS),
            title=record.text("title"),
            page=page,
            page_to=page_to,
            label=record.text("label"),
            heading=record.texts("heading", MOST_HEADINGS),
            start=start,
            end=end,
            text=record.text("text"),
        )
