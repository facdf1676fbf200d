"""A JSON object that was stored, read part by part: what is not as it is written is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LARGEST_NUMBER = 10**9


@dataclass(frozen=True, slots=True)
class Record:
    """`what` it is in the words of a refusal. Every part raises ValueError."""

    found: Mapping[str, Any]
    what: str

    @classmethod
    def of(cls, found: object, what: str) -> "Record":
        if not isinstance(found, Mapping):
            raise ValueError(f"{what} is an object")
        return cls(found, what)

    def text(self, name: str) -> str:
        value = self.found.get(name, "")
        if not isinstance(value, str):
            raise ValueError(f"{name!r} of {self.what} is a text")
        return value

    def texts(self, name: str, most: int | None = None) -> tuple[str, ...]:
        value = self.list(name)
        if not all(isinstance(each, str) for each in value):
            raise ValueError(f"{name!r} of {self.what} is a list of texts")
        if most is not None and len(value) > most:
            raise ValueError(f"{name!r} of {self.what} has {len(value):,} texts")
        return tuple(value)

    def list(self, name: str) -> list[Any]:
        value = self.found.get(name, [])
        if not isinstance(value, list):
            raise ValueError(f"{name!r} of {self.what} is a list")
        return value

    def number(self, name: str, missing: int | None = None) -> int:
        """`missing` is what it is where an older version wrote none."""
        value = self.found.get(name, missing)
        if type(value) is not int or not 0 <= value <= LARGEST_NUMBER:
            raise ValueError(f"{name!r} of {self.what} is a whole number")
        return value
