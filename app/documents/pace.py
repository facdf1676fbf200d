"""How fast files were read on this machine, kept with what was read of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlite_utils import Database as Tables

from app.documents.index_facts import note, noted

PAGES, BYTES, MS = "paced pages", "paced bytes", "paced ms"
OCR_PAGES, OCR_MS = "paced pages by OCR", "paced ms by OCR"
USUAL_OCR_S = 10.0
"""For a page, where none was read yet."""
SMALL, SMALL_MS = "paced small files", "paced small ms"
MOST_BYTES = 50_000
"""Of a small file, which takes as long as any does that has hardly a word."""
NOTED = [PAGES, BYTES, MS, OCR_PAGES, OCR_MS, SMALL, SMALL_MS]
LONGEST_MS = 1_200_000
"""Of reading counts; what is older weighs less and less."""


@dataclass(frozen=True, slots=True)
class Pace:
    pages_per_s: float
    bytes_per_s: float
    seconds_per_file: float = 0.0
    """Of a small one: no file takes less."""

    def seconds(self, num_files: int, num_bytes: int) -> float:
        """How long so many files take that have so many bytes together."""
        return max(num_files * self.seconds_per_file, num_bytes / self.bytes_per_s)


def note_pace(
    tables: Tables, *, num_pages: int, num_bytes: int, seconds: float, num_ocr: int = 0
) -> None:
    """Of one file that was read; where OCR has read pages of it, those are what took the time."""
    ms = round(1000 * seconds)
    if num_ocr:
        _note(tables, OCR_MS, {OCR_PAGES: num_ocr, OCR_MS: ms})
        return
    _note(tables, MS, {PAGES: num_pages, BYTES: num_bytes, MS: ms})
    if num_bytes <= MOST_BYTES:
        _note(tables, SMALL_MS, {SMALL: 1, SMALL_MS: ms})


def pace(tables: Tables) -> Pace | None:
    """None: nothing was read yet."""
    known = _known(tables)
    if not all(known[name] for name in (PAGES, BYTES, MS)):
        return None
    seconds = known[MS] / 1000
    seconds_per_file = known[SMALL_MS] / 1000 / known[SMALL] if known[SMALL] else 0.0
    return Pace(known[PAGES] / seconds, known[BYTES] / seconds, seconds_per_file)


def ocr_seconds_a_page(tables: Tables) -> float:
    known = _known(tables)
    if not known[OCR_PAGES]:
        return USUAL_OCR_S
    return known[OCR_MS] / 1000 / known[OCR_PAGES]


def _note(tables: Tables, clock: str, more: Mapping[str, int]) -> None:
    """`clock` is the name of the time that they took."""
    before = _known(tables)
    is_long = before[clock] > LONGEST_MS
    for name, value in more.items():
        kept = before[name] // 2 if is_long else before[name]
        note(tables, name, kept + value)


def _known(tables: Tables) -> dict[str, int]:
    return {name: noted(tables, name) or 0 for name in NOTED}
