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
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from app.documents.child import MOST_BYTES, MOST_SECONDS, OUT_OF_MEMORY
from app.documents.document import Facts, FileState, Page, Unreadable
from app.documents.page_picture import MOST_PNG_BYTES, PagePicture, PictureWish, picture_from
from app.documents.process import PIECE_BYTES, ParserProcess
from app.documents.said import makes_no_sense, understood
from app.documents.sniff import open_regular

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
        async with self._asked(path, {"password": password}, root) as asked:
            while not asked.is_over:
                said = await self._heard(asked, asked.process.receive)
                for part in understood(said, path.name):
                    if isinstance(part, Unreadable):
                        asked.end()
                        raise part
                    asked.watch.note(part)
                    if "end" in said and isinstance(part, Facts):
                        asked.end()
                        part = replace(part, sha256=asked.file.digest())
                    yield part

    async def look(
        self,
        path: Path,
        numbers: Sequence[int],
        *,
        password: str = "",
        root: Path | None = None,
    ) -> AsyncGenerator[Page | Facts, None]:
        """What is written on the pictures of these pages, one after the other as they are read, and
        last Facts with the `sha256` of what they were read from. Each has the time of a file.

        Raises Unreadable, and whoever stops listening ends the process, as with `read`.
        """
        order = {"password": password, "numbers": list(numbers)}
        async with self._asked(path, order, root) as asked:
            left = list(numbers)
            while not asked.is_over:
                asked.watch = _Watch(asked.process, self._limits, path.name)
                said = await self._heard(asked, asked.process.receive)
                for part in understood(said, path.name):
                    if isinstance(part, Unreadable):
                        asked.end()
                        raise part
                    if isinstance(part, Facts):
                        asked.end()
                        yield replace(part, sha256=asked.file.digest())
                    elif left[:1] == [part.number]:
                        left.pop(0)
                        yield part
                    else:
                        raise makes_no_sense(path.name)

    async def draw(self, path: Path, wish: PictureWish, *, password: str = "") -> PagePicture:
        """A page of a PDF as it looks. Raises Unreadable, as `read` does."""
        order = {"password": password, "picture": asdict(wish)}
        async with self._asked(path, order, None) as asked:
            said = await self._heard(asked, asked.process.receive)
            try:
                if "unreadable" in said:
                    state, sentence = said["unreadable"]
                    asked.end()
                    raise Unreadable(FileState(state), str(sentence))
                facts = said["picture"]
                size = int(facts["size"])
                if not 0 < size <= MOST_PNG_BYTES:
                    raise ValueError("no page takes so many bytes")
                png = await self._heard(asked, lambda: asked.process.receive_bytes(size))
                picture = picture_from(facts, png, asked.file.digest())
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise makes_no_sense(path.name) from error
            asked.end()
            return picture

    @asynccontextmanager
    async def _asked(
        self, path: Path, order: Mapping[str, Any], root: Path | None
    ) -> AsyncGenerator["_Asked", None]:
        """A file and what is to be done with it, handed over. A process that has not come to the
        end of it is ended. Raises Unreadable."""
        async with self._turn:
            file = _OpenFile(path.name, await self._blocking(lambda: open_regular(path, root)))
            asked = None
            try:
                process = await self._ready(path.name)
                asked = _Asked(process, file, _Watch(process, self._limits, path.name))
                whole = {**order, "name": path.name, "size": file.size}
                await self._heard(asked, lambda: process.send(whole, file.pieces) or None)
                yield asked
            finally:
                # In the thread that may be reading from it now.
                self._thread.submit(file.close)
                if asked is None or not asked.is_over:
                    self._drop()
                elif self._is_worn():
                    await self.close()

    async def _heard(self, asked: "_Asked", work: Callable[[], Found | None]) -> Found:
        """What comes of it, unless the process is gone."""
        found = await self._watched(asked.watch, work)
        if found is None:
            name = asked.file.name
            raise Unreadable(FileState.FAILED, await self._why_gone(name))
        return found

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


@dataclass(slots=True)
class _Asked:
    """What one file is asked for. Owned by `Reader`."""

    process: ParserProcess
    file: "_OpenFile"
    watch: "_Watch"
    is_over: bool = False

    def end(self) -> None:
        """Nothing more comes. Raises Unreadable for a file that has changed meanwhile."""
        self.is_over = True
        self.file.check()


class _OpenFile:
    """The file as it was when it was opened. Owned by `Reader`."""

    def __init__(self, name: str, file: FileIO) -> None:
        self.name = name
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
                f"{self.name} cannot be read to its end ({error.strerror or error}): copy it again"
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
                f"{self.name} was being written while it was read: it is read again when it has"
                " changed.",
            )

    def close(self) -> None:
        self._file.close()


class _Watch:
    """What one file has taken so far. Owned by `Reader`."""

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
                raise makes_no_sense(self._name)
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
