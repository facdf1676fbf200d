"""PDF files through the library with the real reading process: pages a second of processor time,
and, in a process of its own, what memory a long one takes.

`python -m app.bench.docs_reading FILE` prints by how many bytes the app and the reading process
grew.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import NamedTuple

import psutil

from app.documents.document import FileState
from app.documents.library import Library
from app.documents.overview import status_of
from app.documents.reading import Reader
from engine.errors import EngineError

TICK_S = 0.02


class Read(NamedTuple):
    """What files held, and what they took in both processes, from being looked for to being
    found."""

    num_pages: int
    num_passages: int
    app_s: float
    reader_s: float

    @property
    def pages_per_s(self) -> float:
        return self.num_pages / (self.app_s + self.reader_s)


class Grown(NamedTuple):
    """Bytes, at the most."""

    app: int
    reader: int


@asynccontextmanager
async def new_library() -> AsyncIterator[Library]:
    """An empty one whose reading process has been started: that takes as long as many pages."""
    with tempfile.TemporaryDirectory(prefix="inglenook-") as name:
        folder = Path(name).resolve()
        library = Library(folder / "documents.sqlite3", Reader())
        try:
            await library.prepare()
            first = folder / "first.txt"
            first.write_text("What is read first starts the process.")
            await library.add(first)
            await library.settled()
            await library.remove(first)
            yield library
        finally:
            await library.close()


async def read(library: Library, folder: Path) -> Read:
    """Take a folder in, and out again. Raises EngineError where nothing in it is read."""
    ours, theirs = process_time(), _children_s()
    await library.add(folder)
    await library.settled()
    ours, theirs = process_time() - ours, _children_s() - theirs
    status = await library.ask(lambda tables: status_of(tables, str(folder)))
    if not status.counts.get(FileState.INDEXED):
        raise EngineError(f"There is no document with text in {folder}: choose another folder.")
    num_pages, num_passages = await library.ask(
        lambda tables: tables.execute(
            "select (select count(*) from page), (select count(*) from passage)"
        ).fetchone()
    )
    await library.remove(folder)
    return Read(num_pages, num_passages, ours, theirs)


def _children_s() -> float:
    """Of those that run and, where the system tells, of those that have ended."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            used = child.cpu_times()
            total += used.user + used.system
    return total


def grown_by(path: Path) -> Grown:
    """What a file takes of a fresh process. Raises EngineError where it fails."""
    command = [sys.executable, "-m", "app.bench.docs_reading", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise EngineError(f"The memory could not be measured: {done.stderr[-300:]}")
    app, reader = map(int, done.stdout.split()[-2:])
    return Grown(app, reader)


async def watched(path: Path) -> Grown:
    async with new_library() as library:
        with _peaks() as peaks:
            await library.add(path)
            await library.settled()
    return peaks.grown


@dataclass(slots=True)
class _Peaks:
    """Of this process and its children. Owned by the thread of `_peaks`."""

    before: Grown
    most: Grown = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.before

    def look(self) -> None:
        now = _resident()
        self.most = Grown(max(self.most.app, now.app), max(self.most.reader, now.reader))

    @property
    def grown(self) -> Grown:
        return Grown(self.most.app - self.before.app, self.most.reader - self.before.reader)


@contextmanager
def _peaks() -> Iterator[_Peaks]:
    peaks, is_over = _Peaks(_resident()), threading.Event()

    def watch() -> None:
        while not is_over.wait(TICK_S):
            peaks.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        is_over.set()
        thread.join()


def _resident() -> Grown:
    process = psutil.Process()
    reader = 0
    for child in process.children(recursive=True):
        with suppress(psutil.Error):
            reader += child.memory_info().rss
    return Grown(process.memory_info().rss, reader)


if __name__ == "__main__":
    print(*asyncio.run(watched(Path(sys.argv[1]).resolve())))
