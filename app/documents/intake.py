"""The way of a file into the library: hashed, linked if its bytes are known, otherwise read.

    waiting --size--> none, or too many: said at once
            --hash--> known bytes: linked, nothing is read
                  `-> read page by page -> one transaction: pages, passages, index, state

Nothing is kept of a file that was read half: it waits, and is read anew after a restart.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from sqlite_utils import Database as Tables

from app.documents.background import Background
from app.documents.contents import put_document
from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.moves import forget_moves
from app.documents.pace import note_pace
from app.documents.rows import (
    Waiting,
    has_file,
    keep_as_read,
    link,
    next_waiting,
    note_lost,
    remove_file,
    settle,
)
from app.documents.scan import Stamp, is_there, is_under, sha256_of, stamp_of
from app.documents.scans import Scans
from app.documents.sniff import check_size
from app.history.database import Database
from engine.errors import DiskFull

READER_VERSION = 2
"""Of what is read out of files and how: with another one everything is read again."""
MOST_TRIES = 2
"""A file that changes while it is read is left to the next look after so many."""

LOOK_S = 1.0
"""So often it is asked, between pages, whether a file that is read is still wanted."""

logger = logging.getLogger(__name__)


class Reader(Protocol):
    """Who opens a file, in another process."""

    def read(
        self, path: Path, *, password: str = "", root: Path | None = None
    ) -> AsyncGenerator[Page | Facts, None]:
        """Its pages in their order, and its Facts last; Facts may also come before. A link that
        leads out of `root` is refused. Raises Unreadable."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AtWork:
    """What is being read now, and for how many seconds so far. `num_pages` 0: not known yet."""

    path: str
    num_read: int = 0
    num_pages: int = 0
    seconds: float = 0.0
    is_ocr: bool = False
    """The last page was read by OCR, which takes a hundred times as long."""

    @property
    def is_stored(self) -> bool:
        """All of it is read, and it is being written down."""
        return 0 < self.num_pages <= self.num_read


class _Gone(Exception):
    """The file left the library while it was read."""


class Intake:
    """Takes waiting files in, one after the other. Owned by the event loop.

    Passwords are in memory only, and forgotten when nothing waits any more.
    """

    def __init__(
        self,
        store: Database,
        reader: Reader,
        on_taken: Callable[[], None] = lambda: None,
        scans: Scans | None = None,
    ) -> None:
        """`on_taken` is called when the text of another file is there to be found; `scans` reads
        what waits for OCR."""
        self.background = Background(self._take_in, "until the next look no file is taken in")
        self._store = store
        self._on_taken = on_taken
        self._reader = reader
        self._scans = scans
        self._passwords: dict[str, str] = {}
        self._going = asyncio.Event()
        self._going.set()
        self.at_work: AtWork | None = None

    @property
    def is_paused(self) -> bool:
        return not self._going.is_set()

    def pause(self) -> None:
        """Wait with the next page, until `go_on`; what was read of a file so far is held."""
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    def note_password(self, place: str, password: str) -> None:
        self._passwords[place] = password

    async def close(self) -> None:
        await self.background.close()
        await self._reader.close()
        if self._scans is not None:
            await self._scans.close()

    async def _take_in(self) -> None:
        try:
            await self._take_all()
        finally:
            self.at_work = None
        if not self.background.is_woken:
            self._passwords.clear()

    async def _take_all(self) -> None:
        """Raises DiskFull at the end, where there was no room for all."""
        full: DiskFull | None = None
        below: int | None = None
        while waiting := await self._store.run(partial(next_waiting, below=below)):
            await self._going.wait()
            try:
                await self._take(waiting)
            except DiskFull as error:
                # What is smaller may still find room.
                full, below = error, waiting.num_bytes
        if full is not None:
            raise full

    async def _take(self, waiting: Waiting) -> None:
        self.at_work = AtWork(waiting.path)
        for _ in range(MOST_TRIES):
            since = monotonic()
            try:
                stamp = await asyncio.to_thread(stamp_of, waiting.path)
                # Hashing reads all of it, which takes minutes where it is a film.
                check_size(Path(waiting.path).name, stamp.size)
                sha256 = await asyncio.to_thread(sha256_of, waiting.path)
            except OSError as error:
                await self._miss(waiting, error)
                return
            except Unreadable as error:
                await self._settle(waiting, stamp, error)
                return
            if await self._take_bytes(waiting, stamp, sha256, since):
                return
        await self._fail(
            waiting, "It changes while it is read: it is read again when it has changed."
        )

    async def _take_bytes(self, waiting: Waiting, stamp: Stamp, sha256: str, since: float) -> bool:
        """False: the file has changed meanwhile, and nothing was written down. It was begun with at
        `since`."""
        if await self._store.run(
            lambda tables: link(tables, waiting.file_id, stamp, sha256, READER_VERSION)
        ):
            return True
        password = self._password(waiting.path)
        # Of a small file all else takes longer than the reading.
        before = monotonic() - since
        try:
            facts, pages, seconds = await self._read(waiting, password)
        except _Gone:
            return True
        except Unreadable as error:
            if not await _is_still(waiting.path, stamp):
                return False
            needs_password = error.state is FileState.NEEDS_PASSWORD
            if needs_password and self._password(waiting.path) != password:
                # It was given meanwhile: the file waits still, and is read with it.
                return True
            if needs_password and waiting.sha256 == sha256:
                # An older version has read these bytes with the password: that is kept.
                await self._store.run(
                    lambda tables: keep_as_read(
                        tables, waiting.file_id, stamp, sha256, READER_VERSION
                    )
                )
                return True
            await self._settle(waiting, stamp, error)
            return True
        if facts.sha256 != sha256 or not await _is_still(waiting.path, stamp):
            return False
        since = monotonic()
        # Pages for OCR are left to later, when all else was read.
        is_part = (
            not waiting.waits_for_ocr
            and self._scans is not None
            and self._scans.can_read(facts, pages)
        )
        await self._store.run(
            lambda tables: _keep(tables, waiting.file_id, stamp, sha256, facts, pages, is_part)
        )
        self._on_taken()
        # Of a long file this takes as long as the reading.
        seconds += before + monotonic() - since
        await self._store.run(
            lambda tables: note_pace(
                tables,
                num_pages=len(pages),
                num_bytes=stamp.size,
                seconds=seconds,
                num_ocr=sum(PageFlag.OCR in page.flags for page in pages),
            )
        )
        return True

    async def _read(self, waiting: Waiting, password: str) -> tuple[Facts, list[Page], float]:
        """What it holds, and how many seconds that took. Raises Unreadable, _Gone."""
        path = Path(waiting.path)
        root = None if waiting.folder is None else Path(waiting.folder)
        pages: list[Page] = []
        facts: Facts | None = None
        seconds, since = 0.0, monotonic()
        looked = since
        is_ocr = False
        reader: Reader = self._reader
        if waiting.waits_for_ocr and self._scans is not None:
            reader = self._scans
        async with aclosing(reader.read(path, password=password, root=root)) as parts:
            async for part in parts:
                seconds += monotonic() - since
                if isinstance(part, Facts):
                    facts = part
                else:
                    pages.append(part)
                    is_ocr = PageFlag.OCR in part.flags
                known = 0 if facts is None else facts.num_pages
                self.at_work = AtWork(waiting.path, len(pages), known, seconds, is_ocr)
                await self._going.wait()
                since = monotonic()
                # OCR of a long file takes hours.
                if since - looked > LOOK_S:
                    looked = since
                    if not await self._store.run(lambda tables: has_file(tables, waiting.file_id)):
                        raise _Gone
        if facts is None:
            raise Unreadable(FileState.FAILED, "Reading it ended without a result: try again.")
        return facts, pages, seconds

    async def _miss(self, waiting: Waiting, error: OSError) -> None:
        """Where its whole folder is away nothing is said of the file: it waits for its return."""
        place = Path(waiting.folder or waiting.path)
        if not await asyncio.to_thread(is_there, place):
            await self._store.run(lambda tables: note_lost(tables, waiting.root_id))
        elif isinstance(error, FileNotFoundError):
            await self._store.run(lambda tables: _remove(tables, waiting.file_id))
        else:
            await self._fail(waiting, f"It cannot be read ({error.strerror}).")

    async def _fail(self, waiting: Waiting, message: str) -> None:
        logger.info("a file could not be taken in: %s", message)
        await self._settle(waiting, None, Unreadable(FileState.FAILED, message))

    async def _settle(self, waiting: Waiting, stamp: Stamp | None, problem: Unreadable) -> None:
        state, message = problem.state, str(problem)
        await self._store.run(lambda tables: settle(tables, waiting.file_id, stamp, state, message))

    def _password(self, path: str) -> str:
        places = [place for place in self._passwords if is_under(path, place)]
        return self._passwords[max(places, key=len)] if places else ""


async def _is_still(path: str, stamp: Stamp) -> bool:
    """Whether the file is the one that was hashed, so that its text has its right name."""
    try:
        return await asyncio.to_thread(stamp_of, path) == stamp
    except OSError:
        return False


def _remove(tables: Tables, file_id: int) -> None:
    remove_file(tables, file_id)
    forget_moves(tables)


def _keep(
    tables: Tables,
    file_id: int,
    stamp: Stamp,
    sha256: str,
    facts: Facts,
    pages: list[Page],
    is_part: bool,
) -> None:
    """`is_part`: the file waits on, for OCR, and what was read of it is found meanwhile."""
    if not has_file(tables, file_id):
        # It was deleted or removed while it was read.
        return
    version = 0 if is_part else READER_VERSION
    document_id = put_document(tables, sha256, version, facts, pages)
    (state,) = tables.execute("select state from document where id = ?", [document_id]).fetchone()
    settle(
        tables,
        file_id,
        stamp,
        FileState.WAITING if is_part else FileState(state),
        document_id=document_id,
        waits_for_ocr=is_part,
    )
