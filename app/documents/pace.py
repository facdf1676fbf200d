"""How fast files were read on this machine, kept with what was read of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlite_utils import Database as Tables

PAGES, BYTES, MS = "paced pages", "paced bytes", "paced ms"
OCR_PAGES, OCR_MS = "paced pages by OCR", "paced ms by OCR"
USUAL_OCR_S = 10.0
"""For a page, where none was read yet."""
LONGEST_MS = 1_200_000
"""Of reading counts; what is older weighs less and less."""


@dataclass(frozen=True, slots=True)
class Pace:
    pages_per_s: float
    bytes_per_s: float


def note_pace(
    tables: Tables, *, num_pages: int, num_bytes: int, seconds: float, num_ocr: int = 0
) -> None:
    """Of one file that was read; where OCR has read pages of it, those are what took the time."""
    ms = round(1000 * seconds)
    if num_ocr:
        _add(tables, OCR_MS, {OCR_PAGES: num_ocr, OCR_MS: ms})
    else:
        _add(tables, MS, {PAGES: num_pages, BYTES: num_bytes, MS: ms})


def _add(tables: Tables, clock: str, values: Mapping[str, int]) -> None:
    before = _noted(tables)
    is_long = before[clock] > LONGEST_MS
    for name, value in values.items():
        kept = before[name] // 2 if is_long else before[name]
        tables.execute(
            "insert or replace into index_fact(name, value) values (?, ?)", [name, kept + value]
        )


def pace(tables: Tables) -> Pace | None:
    """None: nothing was read yet."""
    noted = _noted(tables)
    if not all(noted[name] for name in (PAGES, BYTES, MS)):
        return None
    seconds = noted[MS] / 1000
    return Pace(noted[PAGES] / seconds, noted[BYTES] / seconds)


def ocr_seconds_a_page(tables: Tables) -> float:
    noted = _noted(tables)
    if not noted[OCR_PAGES]:
        return USUAL_OCR_S
    return noted[OCR_MS] / 1000 / noted[OCR_PAGES]


def _noted(tables: Tables) -> dict[str, int]:
    names = [PAGES, BYTES, MS, OCR_PAGES, OCR_MS]
    rows = tables.execute(
        f"select name, value from index_fact where name in ({', '.join('?' * len(names))})", names
    )
    return {**dict.fromkeys(names, 0), **dict(rows)}
