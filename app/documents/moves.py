"""Which files of the library had another name before: who asks for the old one is led to the new.

A move is remembered for as long as the file that it led to is in the library.
"""

import time
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import NamedTuple

from sqlite_utils import Database as Tables

from app.documents.rows import path_from, stored


class Move(NamedTuple):
    """From one path to another, which has the same bytes."""

    before: str
    now: str


def note_moves(
    tables: Tables, left: Sequence[tuple[str, int | None]], new: Collection[str]
) -> None:
    """Of paths that have `left` the library, with the documents that they were: where the same
    bytes are now, at one of the `new` paths first."""
    for path in new:
        # The name is in use again.
        tables.execute("delete from moved where path = ?", [stored(path)])
    for path, document_id in left:
        if document_id is None:
            continue
        rows = tables.execute("select path from file where document_id = ?", [document_id])
        others = [path_from(each) for (each,) in rows]
        if not others:
            continue
        name = PurePath(path).name
        now = min(others, key=lambda each: (each not in new, PurePath(each).name != name, each))
        tables.execute("update moved set now = ? where now = ?", [stored(now), stored(path)])
        tables.execute(
            "insert or replace into moved(path, now, noticed_at) values (?, ?, ?)",
            [stored(path), stored(now), time.time()],
        )
    forget_moves(tables)


def forget_moves(tables: Tables) -> None:
    """To files that have left the library."""
    tables.execute("delete from moved where now not in (select path from file)")


def moved_to(tables: Tables, path: str) -> str | None:
    """Where a file is that was at this path. None: nobody knows of one."""
    found = tables.execute("select now from moved where path = ?", [stored(path)]).fetchone()
    return None if found is None else path_from(found[0])


def moved_since(tables: Tables, path: str, since: float) -> list[Move]:
    """What led to this path after so many seconds since the epoch."""
    rows = tables.execute(
        "select path from moved where now = ? and noticed_at > ? order by path",
        [stored(path), since],
    )
    return [Move(path_from(before), path) for (before,) in rows]
