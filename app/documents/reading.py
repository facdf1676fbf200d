"""People's files, read by another process that may die: pages as they come, or a sentence.

One process reads many files one after the other, since it takes longer to start than most files to
read. It gets the bytes of a file that we have opened, and is renewed from time to time, and
whenever something went wrong.
"""

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from app.documents.child import MOST_BYTES, MOST_SECONDS, OUT_OF_MEMORY
from app.documents.document import Facts, FileState, Heading, Page, PageFlag, Unreadable
from app.documents.process import ParserProcess
from app.documents.sniff import open_regular

PIECE_BYTES = 1_000_000
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one file may take. Seconds are those of the processor: on a busy machine a sound file
    takes longer by the clock, and only when that is `clock_factor` times as much it counts."""

    memory_bytes: int = MOST_BYTES
    seconds: float = 30.0
    seconds_a_page: float = 0.2
    clock_factor: float = 4.0
    files_a_process: int = 50
    grown_bytes: int = 500_000_000
    """A process that has grown so far is not given another file."""
    tick_s: float = 0.5


START = Limits(seconds=60)
"""What the start of a process may take."""


class Reader:
    """Owned by the event loop. Reads one file at a time: who asks meanwhile waits."""

    def __init__(self, command: Sequence[str] = (), limits: Limits | None = None) -> None:
        """`command` starts the reading process; empty: this program."""
        self._command = command
        self._limits = limits or Limits()
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "documents")
        self._process: ParserProcess | None = None

    async def read(
        self, path: Path, *, password: str = "", root: Path | None = None
    ) -> AsyncGenerator[Page | Facts, None]:
        """The pages of a file and last its Facts; also first what is known of them beforehand, such
        as the number of pages, so the last ones count.

        With `root` a link that leads out of that folder is refused. Raises Unreadable, before the
        first page or after some. Whoever stops listening, or is cancelled, ends the process.
        """
        async with self._turn:
            file = _OpenFile(path.name, await self._blocking(lambda: open_regular(path, root)))
            is_over = False
            try:
                process = await self._ready(path.name)
                watch = _Watch(process, self._limits, path.name)
                sent = await self._watched(
                    watch,
                    lambda: process.send(path.name, password, file.size, file.pieces),
                )
                while not is_over:
                    said = await self._watched(watch, process.receive) if sent else None
                    if said is None:
                        raise Unreadable(FileState.FAILED, await self._why_gone(path.name))
                    for part in _understood(said, path.name):
                        if isinstance(part, Unreadable):
                            is_over = True
                            file.check()
                            raise part
                        watch.note(part)
                        if "end" in said and isinstance(part, Facts):
                            is_over = True
                            file.check()
                            part = replace(part, sha256=file.digest())
                        yield part
            finally:
                # In the thread that may be reading from it now.
                self._thread.submit(file.close)
                if not is_over:
                    self._drop()
                elif self._is_worn():
                    await self.close()

    async def close(self) -> None:
        """End the process; a file that is being read then is FAILED. The next file starts another
        one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await self._blocking(process.end)

    def _drop(self) -> None:
        """End it now, whatever it is doing: it would go on with a file that nobody wants."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._thread.submit(process.end)

    async def _ready(self, name: str) -> ParserProcess:
        """A process that waits for a file. Its start is no part of what the file takes."""
        process = self._process
        if process is None:
            try:
                process = await self._blocking(lambda: ParserProcess(self._command))
            except OSError as error:
                raise _not_started(name, error.strerror or str(error)) from error
            self._process = process
            said = await self._watched(_Watch(process, START, name), process.receive)
            if said is None or "ready" not in said:
                self._process = None
                raise _not_started(name, str(await self._blocking(process.end)))
        process.num_read += 1
        return process

    def _is_worn(self) -> bool:
        process = self._process
        return process is not None and (
            process.num_read >= self._limits.files_a_process
            or process.memory_bytes() > self._limits.grown_bytes
        )

    async def _why_gone(self, name: str) -> str:
        process, self._process = self._process, None
        code = await self._blocking(process.end) if process is not None else 0
        if code == OUT_OF_MEMORY:
            return f"{name} takes more than {MOST_BYTES / 1e9:.0f} GB of memory to read."
        return (
            f"{name} ended the process that reads files ({code}), so it may be damaged: other files"
            " are read by a new one."
        )

    async def _blocking(self, work: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _watched(self, watch: "_Watch", work: Callable[[], Found]) -> Found:
        """Wait for the process as long as it keeps to the limits. Raises Unreadable."""
        waiting = asyncio.get_running_loop().run_in_executor(self._thread, work)
        since = time.monotonic()
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=self._limits.tick_s)
            now = time.monotonic()
            watch.waited_s += now - since
            since = now
            if done:
                return waiting.result()
            if problem := watch.over():
                self._drop()
                # Its end ends the waiting.
                await asyncio.wait({waiting})
                raise problem


class _OpenFile:
    """The file as it was when it was opened. Owned by `Reader.read`."""

    def __init__(self, name: str, file: FileIO) -> None:
        self._name = name
        self._file = file
        self._seen = os.fstat(file.fileno())
        self._hash = hashlib.sha256()
        self._changed = False

    @property
    def size(self) -> int:
        return self._seen.st_size

    def pieces(self) -> Iterator[bytes]:
        """As many bytes as it had, whatever happens to it meanwhile. Raises Unreadable."""
        try:
            yield from self._pieces()
        except OSError as error:
            # A disk that breaks says nothing of the process that gets the file.
            raise Unreadable(
                FileState.FAILED,
                f"{self._name} cannot be read to its end ({error.strerror or error}): copy it again"
                " from where it came from.",
            ) from error

    def _pieces(self) -> Iterator[bytes]:
        left = self._seen.st_size
        while left:
            piece = self._file.read(min(PIECE_BYTES, left))
            if not piece:
                self._changed = True
                piece = bytes(min(PIECE_BYTES, left))
            self._hash.update(piece)
            left -= len(piece)
            yield piece
        now = os.fstat(self._file.fileno())
        before = (self._seen.st_size, self._seen.st_mtime_ns)
        self._changed = self._changed or (now.st_size, now.st_mtime_ns) != before

    def digest(self) -> str:
        return self._hash.hexdigest()

    def check(self) -> None:
        """Raises Unreadable when what was read is a mixture of two states of the file."""
        if self._changed:
            raise Unreadable(
                FileState.FAILED,
                f"{self._name} was being written while it was read: it is read again when it has"
                " changed.",
            )

    def close(self) -> None:
        self._file.close()


class _Watch:
    """What one file has taken so far. Owned by `Reader.read`."""

    def __init__(self, process: ParserProcess, limits: Limits, name: str) -> None:
        self._process = process
        self._limits = limits
        self._name = name
        self._start = process.processor_seconds()
        self._num_pages = 0
        self._num_received = 0
        self.waited_s = 0.0

    def note(self, part: Page | Facts) -> None:
        """Raises Unreadable for pages that do not come one after the other."""
        if isinstance(part, Page):
            self._num_received += 1
            if part.number != self._num_received:
                raise _nonsense(self._name)
            known = part.number
        else:
            # Some numbers are too large for seconds.
            known = min(part.num_pages, sys.maxsize)
        self._num_pages = max(self._num_pages, known)

    def over(self) -> Unreadable | None:
        limits, name = self._limits, self._name
        memory = self._process.memory_bytes()
        if memory > limits.memory_bytes:
            return Unreadable(
                FileState.FAILED,
                f"{name} takes more than {limits.memory_bytes / 1e9:.1f} GB of memory to read.",
            )
        # How many pages there are is what the process says.
        allowed = min(limits.seconds + limits.seconds_a_page * self._num_pages, MOST_SECONDS)
        used = self._process.processor_seconds() - self._start
        if used > allowed or self.waited_s > allowed * limits.clock_factor:
            taken = max(used, self.waited_s)
            return Unreadable(
                FileState.FAILED,
                f"{name} was given up after {taken:.0f} seconds: a file of its length may take"
                f" {allowed:.0f}.",
            )
        return None


def _not_started(name: str, why: str) -> Unreadable:
    return Unreadable(
        FileState.FAILED,
        f"{name} was not read, because the process for it cannot be started ({why}).",
    )


def _nonsense(name: str) -> Unreadable:
    """Of a process that said what it should not."""
    return Unreadable(
        FileState.FAILED, f"{name} made the process that reads files say what makes no sense."
    )


def _understood(said: dict[str, Any], name: str) -> Iterator[Page | Facts | Unreadable]:
    """What the process says, which is believed in nothing but its form."""
    try:
        if "pages" in said:
            yield from map(_page, said["pages"])
        elif "unreadable" in said:
            state, sentence = said["unreadable"]
            yield Unreadable(FileState(state), str(sentence))
        else:
            facts = said["end"] if "end" in said else said["facts"]
            yield Facts(
                kind=str(facts["kind"]),
                num_pages=int(facts["num_pages"]),
                title=str(facts["title"]),
                notice=str(facts["notice"]),
            )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _nonsense(name) from error


def _page(given: dict[str, Any]) -> Page:
    return Page(
        number=int(given["number"]),
        label=str(given["label"]),
        text=str(given["text"]),
        headings=tuple(
            Heading(start=int(start), path=tuple(map(str, path)))
            for start, *path in given["headings"]
        ),
        flags=frozenset(map(PageFlag, given["flags"])),
    )
