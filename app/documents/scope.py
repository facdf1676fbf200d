"""Of which of a person's files questions are asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
        if not isinstance(found, Mapping):
            raise ValueError("a choice of documents is an object")
        return cls(_texts(found, "collections"), _texts(found, "paths"))


WHOLE_LIBRARY = Scope()


def _texts(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{name!r} of a choice of documents is a list of texts")
    return tuple(value)
