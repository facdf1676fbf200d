"""Of which of a person's files questions are asked."""

from dataclasses import dataclass
from typing import Any

from app.documents.record import Record


@dataclass(frozen=True, slots=True)
class Scope:
    """All that lies in these collections and at these places; the whole library where neither is
    named. `paths` are files or folders, absolute. `as_whole`: where that is one document, a model
    reads it from its beginning to its end, if it has room for that."""

    collections: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    as_whole: bool = False

    @property
    def is_whole(self) -> bool:
        return not (self.collections or self.paths)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        found: dict[str, Any] = {
            "collections": list(self.collections),
            "paths": list(self.paths),
        }
        return found | ({"as_whole": True} if self.as_whole else {})

    @classmethod
    def from_json(cls, found: object) -> "Scope":
        """Raises ValueError for what `as_json` does not write."""
        record = Record.of(found, "a choice of documents")
        as_whole = record.found.get("as_whole") is True
        scope = cls(record.texts("collections"), record.texts("paths"), as_whole)
        if "" in (*scope.collections, *scope.paths):
            raise ValueError("a choice of documents names each collection and each place")
        return scope


WHOLE_LIBRARY = Scope()
