"""Copies of the history, made before its schema changes.

They lie beside it as `history.backup-v1.sqlite3`, the number being the schema they hold. To go
back, close the app and put the copy in the place of the history.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

NUM_KEPT = 3


class Backups:
    """The copies beside one history. Used by the store thread only."""

    def __init__(self, history: Path) -> None:
        self._history = history

    def paths(self) -> list[Path]:
        """The copies there are, oldest schema first."""
        numbered = []
        for path in self._history.parent.glob("*" + self._history.suffix):
            start, mark, number = path.stem.rpartition(".backup-v")
            if mark and start == self._history.stem and number.isdecimal():
                numbered.append((int(number), path))
        return [path for _, path in sorted(numbered)]

    def make(self, source: sqlite3.Connection, schema: int) -> Path:
        """A whole copy, or none: it takes its name when it is complete."""
        name = f"{self._history.stem}.backup-v{schema}{self._history.suffix}"
        path = self._history.with_name(name)
        part = path.with_name(name + ".part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as copy:
                source.backup(copy)
                # One file that stands alone, without a log beside it.
                copy.execute("pragma journal_mode = delete")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        for old in self.paths()[:-NUM_KEPT]:
            old.unlink()
        return path

    def forget(self, ids: Sequence[str]) -> None:
        """Delete the copies that hold one of these conversations, or cannot be read."""
        for path in self.paths():
            if _may_hold(path, ids):
                path.unlink()


def _may_hold(path: Path, ids: Sequence[str]) -> bool:
    marks = ", ".join("?" * len(ids))
    query = f"select 1 from conversation where id in ({marks}) limit 1"
    try:
        # `immutable` leaves no files beside the copy.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as copy:
            return copy.execute(query, list(ids)).fetchone() is not None
    except sqlite3.Error:
        return True
