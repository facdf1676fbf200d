"""The Python environment for the graphics card: where it lies, and whether it may be started.

    cuda/             whole and checked, with a note of what it is; only this is ever started
    cuda.new-.../     being made
    cuda.old-.../     on its way out

The launcher asks here, so only the standard library and the file lock are imported.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp

from filelock import FileLock, Timeout

from app.private_file import write_private
from app.version import VERSION
from engine.errors import HomeError, UsageError

NOTE = "inglenook.json"
ANEW = "`inglenook cuda install` makes it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What an environment is. `version` is that of the Inglenook in it, `num_bytes` its size."""

    version: str
    torch: str
    python: str
    num_bytes: int


class Environment:
    """The one of a home. Its folder changes only under `alone`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def python(self) -> Path:
        return python_in(self.folder)

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the Inglenook in it; arguments follow. Isolated, so that neither the folder
        one stands in nor PYTHONPATH puts another one before it."""
        return (str(self.python), "-I", "-m", "app.launcher")

    def made(self) -> Made | None:
        """None: there is none that was finished."""
        try:
            return Made(**json.loads((self.folder / NOTE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def obstacle(self, version: str = VERSION) -> str:
        """Why the one that is here is not started, in a sentence; empty when it may be, and when
        there is none."""
        made = self.made()
        if made is None:
            return ""
        if made.version != version:
            return (
                f"What is installed for the graphics card belongs to Inglenook {made.version} and"
                f" this is {version}, so the processor computes: {ANEW}."
            )
        if not self.python.exists():
            return (
                f"What is installed for the graphics card needs Python {made.python}, which is gone"
                f" from this machine, so the processor computes: {ANEW}."
            )
        return ""

    @property
    def is_ready(self) -> bool:
        return self.made() is not None and not self.obstacle()

    @property
    def is_ours(self) -> bool:
        """Whether this very process runs from it."""
        return Path(sys.prefix).absolute() == self.folder.absolute()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else makes or removes it meanwhile. Raises UsageError."""
        lock = FileLock(self.folder.with_name(f"{self.folder.name}.lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise UsageError(
                "Another Inglenook is at work on the installation for the graphics card: wait"
                " until it has ended."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def new_folder(self) -> Path:
        """Where one is made. Raises HomeError."""
        try:
            return Path(mkdtemp(prefix=f"{self.folder.name}.new-", dir=self.folder.parent))
        except OSError as error:
            raise HomeError(
                f"Nothing can be made in {self.folder.parent} ({error.strerror}): make room there,"
                " or make it writable."
            ) from error

    def take(self, new: Path, made: Made) -> None:
        """Let this one be it: the note is written last but one, and the name given last."""
        try:
            write_private(new / NOTE, json.dumps(asdict(made)))
            self._put_away()
            new.replace(self.folder)
        except OSError as error:
            raise HomeError(
                f"{self.folder} cannot be replaced ({error.strerror}): quit every Inglenook that"
                " uses it, and try again."
            ) from error
        self.sweep()

    def remove(self) -> bool:
        """False: this process runs from it, so it is only not started any more; the next start of
        the launcher deletes it."""
        try:
            (self.folder / NOTE).unlink(missing_ok=True)
        except OSError as error:
            raise HomeError(
                f"{self.folder} cannot be removed ({error.strerror}): make it writable."
            ) from error
        if self.is_ours:
            return False
        self.sweep()
        return not self.folder.exists()

    def sweep(self) -> None:
        """Delete what was not finished and what was put away. Call it under `alone`."""
        for left in self.leavings():
            shutil.rmtree(left, ignore_errors=True)

    def leavings(self) -> list[Path]:
        name = self.folder.name
        found = [
            each
            for kind in ("new", "old")
            for each in self.folder.parent.glob(f"{name}.{kind}-*")
            if each.is_dir()
        ]
        if self.folder.is_dir() and self.made() is None and not self.is_ours:
            found.append(self.folder)
        return found

    def _put_away(self) -> None:
        if self.folder.exists():
            place = Path(mkdtemp(prefix=f"{self.folder.name}.old-", dir=self.folder.parent))
            self.folder.replace(place / self.folder.name)


def python_in(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def sweep_if_alone(environment: Environment) -> None:
    """At a start: what an interrupted installation left goes, unless one is on its way."""
    if environment.leavings():
        with suppress(UsageError, OSError), environment.alone():
            environment.sweep()
