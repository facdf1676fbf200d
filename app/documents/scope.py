"""Of which of a person's files questions are asked."""

from dataclasses import dataclass
from typing import Any

from app.documents.record import Record


@dataclass(frozen=True, slots=True)
class Scope:
    """All that lies in these collections and at these places; the whole library where neither is
    named. `paths` are files or folders, absolute."""

    collections: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not (self.collections or self.paths)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return {"collections": list(self.collections), "paths": list(self.paths)}

    @classmethod
    def from_json(cls, found: object) -> "Scope":
        """Raises ValueError for what `as_json` does not write."""
        record = Record.of(found, "a choice of documents")
        scope = cls(record.texts("collections"), record.texts("paths"))
        if "" in (*scope.collections, *scope.paths):
            raise ValueError("a choice of documents names each collection and each place")
        return scope


WHOLE_LIBRARY = Scope()
