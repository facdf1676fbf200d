"""A mark in an answer that names a quotation, and what became of it when it was checked.

text        Inn rises in Switzerland [2]. It is long.
sentence    ^-------------------------^
mark                                 ^-^
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Verdict(StrEnum):
    """What became of a mark."""

    KEPT = "kept"
    """What the sentence says stands in the passage that the model named."""
    CORRECTED = "corrected"
    """It stands in another passage that was given, or clearly better there."""
    ADDED = "added"
    """The model named none, and it clearly stands in this one."""
    DROPPED = "dropped"
    """It stands in none of the passages: the mark is not to be shown."""


class Span(NamedTuple):
    """From `start` to before `end`, in characters of a text (code points, not UTF-16)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """`number` is that of the quotation, from 1. `written` is what the model wrote, None where it
    wrote nothing; then `mark` is empty, and tells where a mark belongs. `sentence` is what the
    quotation bears out, with the mark in it or right after it; `quote` is the part of the
    quotation's text that does."""

    number: int
    sentence: Span
    mark: Span
    verdict: Verdict
    written: int | None
    quote: Span = Span(0, 0)

    @property
    def is_shown(self) -> bool:
        return self.verdict is not Verdict.DROPPED

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        return {
            "number": self.number,
            "sentence": list(self.sentence),
            "mark": list(self.mark),
            "verdict": self.verdict.value,
            "written": self.written,
            "quote": list(self.quote),
        }

    @classmethod
    def from_json(cls, found: object) -> "Citation":
        """Raises ValueError for what `as_json` does not write."""
        if not isinstance(found, Mapping):
            raise ValueError("a citation is an object")
        number, written = found.get("number"), found.get("written")
        if type(number) is not int or not (written is None or type(written) is int):
            raise ValueError("the number of a citation is a whole number")
        return cls(
            number=number,
            sentence=span_from_json(found.get("sentence")),
            mark=span_from_json(found.get("mark")),
            verdict=Verdict(str(found.get("verdict"))),
            written=written,
            quote=span_from_json(found.get("quote", [0, 0])),
        )


def span_from_json(found: object) -> Span:
    """Raises ValueError."""
    match found:
        case [int(start), int(end)] if 0 <= start <= end:
            return Span(start, end)
    raise ValueError("a part of an answer is two places, the first one first")
