"""Which document an answer had before it, from its beginning to its end."""

from dataclasses import dataclass
from typing import Any

from app.documents.quotation import MOST_PATHS, name_of
from app.documents.record import Record

LONGEST_FENCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Which document was given to a model from its beginning to its end, and between which
    fences; `paths` were all files with these bytes, of those that were asked."""

    sha256: str
    paths: tuple[str, ...]
    title: str
    num_pages: int
    fence: str

    @property
    def name(self) -> str:
        """Of the file, without its folders."""
        return name_of(self.paths)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return {
            "sha256": self.sha256,
            "paths": list(self.paths),
            "title": self.title,
            "num_pages": self.num_pages,
            "fence": self.fence,
        }

    @classmethod
    def from_json(cls, found: object) -> "Whole":
        """Raises ValueError for what `as_json` does not write."""
        record = Record.of(found, "a document that was read whole")
        return cls(
            sha256=record.text("sha256"),
            paths=record.texts("paths", MOST_PATHS),
            title=record.text("title"),
            num_pages=record.number("num_pages"),
            fence=record.text("fence")[:LONGEST_FENCE],
        )
