"""Every connection that the app opened to another machine: to whom, when and why."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from app.private_file import write_private
from engine.errors import HomeError

MOST = 1000


@dataclass(frozen=True, slots=True)
class Connection:
    """`at` in seconds since 1970; `why` is what the user had asked for."""

    at: float
    host: str
    why: str


class Connections:
    """A file of the newest ones, one JSON object a line. Owned by the event loop."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now

    def note(self, host: str, why: str) -> None:
        """Write it down before it is opened. Raises HomeError where that is impossible: nothing is
        sent that is not on the list."""
        line = json.dumps(asdict(Connection(round(self._now(), 3), host, why)))
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with open(os.open(self._path, flags, 0o600), "a", encoding="utf-8") as file:
                file.write(line + "\n")
            known = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
            if len(known) > 2 * MOST:
                write_private(self._path, "\n".join(known[-MOST:]) + "\n")
        except OSError as error:
            raise HomeError(
                f"The list of connections in {self._path} cannot be written ({error.strerror}), and"
                " without it none is opened: make room on the disk, or make the file writable."
            ) from error

    def all(self) -> list[Connection]:
        """The newest first; lines that cannot be read are left out."""
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        found = []
        for line in reversed(lines[-MOST:]):
            try:
                values = json.loads(line)
                found.append(Connection(float(values["at"]), str(values["host"]), values["why"]))
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
                continue
        return found
