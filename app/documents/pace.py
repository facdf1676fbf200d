"""How fast files were read on this machine, kept with what was read of them."""

from dataclasses import dataclass

from sqlite_utils import Database as Tables

PAGES, BYTES, MS = "paced pages", "paced bytes", "paced ms"
LONGEST_MS = 1_200_000
"""Of reading counts; what is older weighs less and less."""


@dataclass(frozen=True, slots=True)
class Pace:
    pages_per_s: float
    bytes_per_s: float


def note_pace(tables: Tables, *, num_pages: int, num_bytes: int, seconds: float) -> None:
    """Of one file that was read."""
    before = _noted(tables)
    is_long = before[MS] > LONGEST_MS
    for name, value in ((PAGES, num_pages), (BYTES, num_bytes), (MS, round(1000 * seconds))):
        kept = before[name] // 2 if is_long else before[name]
        tables.execute(
            "insert or replace into index_fact(name, value) values (?, ?)", [name, kept + value]
        )


def pace(tables: Tables) -> Pace | None:
    """None: nothing was read yet."""
    noted = _noted(tables)
    if not all(noted.values()):
        return None
    seconds = noted[MS] / 1000
    return Pace(noted[PAGES] / seconds, noted[BYTES] / seconds)


def _noted(tables: Tables) -> dict[str, int]:
    rows = tables.execute(
        "select name, value from index_fact where name in (?, ?, ?)", [PAGES, BYTES, MS]
    )
    return {PAGES: 0, BYTES: 0, MS: 0, **dict(rows)}
