"""A SQLite file of ours: one thread owns the only connection, everyone else sends it work.

    any thread or loop --fn--> queue --> store thread: begin, fn(tables), commit --> result

Two rules: what a caller was told is stored is on the disk, and a caller is always told.
"""

import asyncio
import contextlib
import errno
import os
import queue
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlite_utils import Database as Tables

from app.history.backups import Backups
from app.history.migrations import MIGRATIONS, Step, migrate, version
from engine.errors import DatabaseNewer, DiskFull, HistoryError

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
# Below this, an input/output error is taken for a full disk.
FULL_BELOW_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a file is for. `name` and `if_damaged` are for the user's sentences.

    `is_only_copy`: what is lost here is lost, so the disk is waited for and copies are made before
    the schema changes. `text_indexes` keep what was deleted until their parts are merged.
    """

    name: str
    steps: Sequence[Step]
    is_only_copy: bool
    if_damaged: str
    text_indexes: tuple[str, ...] = ()


HISTORY = Holding(
    name="history",
    steps=MIGRATIONS,
    is_only_copy=True,
    if_damaged="It was left as it is: move it away, and put a backup in its place or start empty.",
    text_indexes=("conversation_fts", "message_fts"),
)


class _Call(NamedTuple):
    work: Callable[[], Any]
    result: Future[Any]


class Database:
    """An open file. May be shared by threads; only the store thread touches the connection.

    Opening creates the file (readable by its owner only) or migrates it, and raises what is
    wrong with it; the file is never deleted or replaced, and where somebody else did that nothing
    more is written. `close()` finishes what was sent.
    Without a path it lies in memory: no file is ever made for it. A reader finds what was stored
    last, and does not wait for who writes; who writes must have opened the file before.
    """

    def __init__(
        self, path: Path | None, holding: Holding = HISTORY, *, is_reader: bool = False
    ) -> None:
        self.path = path
        self._holding = holding
        self._is_reader = is_reader
        is_copied = path is not None and holding.is_only_copy and not is_reader
        self.backups = Backups(path) if path is not None and is_copied else None
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._tables: Tables | None = None
        self._opened_file: os.stat_result | None = None
        opened: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._serve, args=(opened,), name=f"{holding.name}-store", daemon=True
        )
        self._thread.start()
        if opened.exception() is not None:
            # The file is let go before its owner hears that something must be done with it.
            self._thread.join()
        opened.result()

    async def run(self, fn: Callable[[Tables], T]) -> T:
        """`fn`'s result, once its transaction is stored; whatever it raises undoes all it did.

        Cancelling the caller drops a call that waits; one that has begun is finished.
        """
        return await asyncio.wrap_future(self._submit(lambda: self._in_transaction(fn)))

    def run_sync(self, fn: Callable[[Tables], T]) -> T:
        """As `run`, for a thread without a loop."""
        return self._submit(lambda: self._in_transaction(fn)).result()

    async def erase(self, ids: Sequence[str], fn: Callable[[Tables], T]) -> T:
        """As `run`, and afterwards what `fn` deleted is in none of the history's files.

        `ids` are the conversations that `fn` deletes: a backup that holds one goes, too.
        """
        return await asyncio.wrap_future(self._submit(lambda: self._erase(ids, fn)))

    async def empty_log(self) -> bool:
        """Let no text of what was deleted stay in the log. False: somebody is reading now, and it
        stays until the next time."""
        return await asyncio.wrap_future(self._submit(self._empty_log))

    def _empty_log(self) -> bool:
        assert self._tables is not None
        (busy, _, _) = self._tables.execute("pragma wal_checkpoint(truncate)").fetchone()
        return not busy

    async def damage(self) -> str:
        """What SQLite finds wrong with the file; empty when it is sound."""
        (result,) = await self.run(lambda tables: tables.execute("pragma quick_check").fetchone())
        return "" if result == "ok" else str(result)

    def close(self) -> None:
        """Finish what was sent before, then close the file. Twice is once."""
        self._calls.put(None)
        self._thread.join()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if threading.current_thread() is self._thread:
            raise RuntimeError("work in the store thread must use the tables it was given")
        result: Future[T] = Future()
        self._calls.put(_Call(work, result))
        # Sent first, looked second: a thread that ends in between cannot leave us waiting.
        if self._ended.is_set():
            self._refuse_all()
        return result

    def _refuse_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                call = self._calls.get_nowait()
                if call is not None and call.result.set_running_or_notify_cancel():
                    call.result.set_exception(
                        HistoryError(
                            f"The {self._holding.name} is closed: restart the app to go on."
                        )
                    )

    def _serve(self, opened: Future[None]) -> None:
        try:
            self._perform(_Call(self._open, opened))
            if opened.exception() is not None:
                return
            while (call := self._calls.get()) is not None:
                self._perform(call)
                del call  # or the last result would stay in memory until the next call
        finally:
            self._ended.set()
            if self._tables is not None:
                self._tables.close()
            self._refuse_all()

    def _perform(self, call: _Call) -> None:
        if not call.result.set_running_or_notify_cancel():
            return
        try:
            with self._errors_as_sentences():
                value = call.work()
        except BaseException as error:  # handed to the caller, whatever it is
            call.result.set_exception(error)
        else:
            call.result.set_result(value)

    @property
    def _place(self) -> str:
        return ":memory:" if self.path is None else str(self.path)

    @property
    def _name(self) -> str:
        return f"The {self._holding.name} at {self._place}"

    def _open(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives -wal and -shm the mode of the file it finds.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._check_rights(self.path)
        try:
            self._connect(self._place)
        except sqlite3.OperationalError as error:
            if not self._is_reader or not isinstance(self._sentence(error), DiskFull):
                raise
            if self.path is None or _size(_beside(self.path, "-wal")):
                raise
            # Nothing can be made beside it, so nobody has it open to write, either.
            self._connect(f"{self.path.absolute().as_uri()}?immutable=1")
        if self.path is not None:
            self._opened_file = os.stat(self.path)

    def _connect(self, place: str) -> None:
        if self._tables is not None:
            self._tables.close()
        connection = sqlite3.connect(
            place, timeout=BUSY_TIMEOUT_S, isolation_level=None, uri=place.startswith("file:")
        )
        tables = self._tables = Tables(connection, execute_plugins=False)
        found, known = version(tables), len(self._holding.steps)
        if found > known:
            raise DatabaseNewer(
                f"{self._name} was written by a newer version of the app (format"
                f" {found}; this version reads up to {known}): update the app to open it."
                " Nothing was changed."
            )
        tables.execute("pragma journal_mode = wal")
        # FULL syncs every commit: in WAL mode, NORMAL survives a killed app but may lose the
        # last messages with the power.
        tables.execute(f"pragma synchronous = {'full' if self._holding.is_only_copy else 'normal'}")
        tables.execute("pragma secure_delete = on")
        # Chats do not belong into files of the system's temporary folder.
        tables.execute("pragma temp_store = memory")
        tables.execute("pragma foreign_keys = on")
        if found < known:
            if tables.table_names() and self.backups is not None:
                self.backups.make(connection, found)
            migrate(tables, self._holding.steps)
        # A purge that was cut off after its commit leaves text in the log. A disk too full for
        # this is no reason not to show the chats. A reader would wait here for who writes.
        if not self._is_reader:
            with contextlib.suppress(sqlite3.OperationalError):
                tables.execute("pragma wal_checkpoint(truncate)").fetchall()

    def _check_rights(self, path: Path) -> None:
        """SQLite would make the files beside one that may only be read as unwritable as it is, and
        there they would stay. Raises HistoryError."""
        self._check_right(path)
        for beside in (_beside(path, "-wal"), _beside(path, "-shm")):
            if beside.exists() and not _may(beside, os.R_OK | os.W_OK):
                # Left by such an opening of an older version.
                with contextlib.suppress(OSError):
                    beside.chmod(0o600)
                self._check_right(beside)

    def _check_right(self, file: Path) -> None:
        # Asked, not opened: closing it would let go of every lock that this process has on it.
        if _may(file, os.R_OK | os.W_OK):
            return
        lacking = "be read but not written" if _may(file, os.R_OK) else "not be read"
        raise HistoryError(
            f"The {self._holding.name} at {file} may {lacking}: give your user the right to read"
            " and to write this file and its folder, or choose another place with INGLENOOK_HOME."
        )

    def _in_transaction(self, fn: Callable[[Tables], T]) -> T:
        tables = self._tables
        assert tables is not None
        # `immediate` waits for another process here, where nothing has been read yet.
        tables.execute("begin" if self._is_reader else "begin immediate")
        num_changes = tables.conn.total_changes
        try:
            value = fn(tables)
            # A reader changes only temporary tables, which lie in no file.
            if not self._is_reader and tables.conn.total_changes != num_changes:
                self._check_file()
            tables.execute("commit")
        finally:
            tables.rollback()
        return value

    def _check_file(self) -> None:
        """SQLite writes on into a file that was deleted, and all of it would be lost at the end.

        What it holds can still be read. Raises HistoryError.
        """
        if self.path is None or self._opened_file is None:
            return
        try:
            is_same = os.path.samestat(os.stat(self.path), self._opened_file)
        except (FileNotFoundError, NotADirectoryError):
            is_same = False
        if not is_same:
            raise HistoryError(
                f"{self._name} was deleted, moved or replaced while Inglenook used it, and nothing"
                " more can be stored in it: put it back, or copy what you still need from here,"
                " quit Inglenook and start it again."
            )

    def _erase(self, ids: Sequence[str], fn: Callable[[Tables], T]) -> T:
        def delete_and_merge(tables: Tables) -> T:
            value = fn(tables)
            # The text index keeps what was deleted until its parts are merged.
            for index in self._holding.text_indexes:
                tables.execute(f"insert into {index}({index}) values ('optimize')")
            return value

        # First the backups: if this fails, the chat is still there to be deleted again.
        if self.backups is not None:
            self.backups.forget(ids)
        value = self._in_transaction(delete_and_merge)
        if not self._empty_log():
            raise HistoryError(
                "The chat is deleted, and its text will leave the disk at the next start:"
                " another program is reading the history now."
            )
        return value

    @contextlib.contextmanager
    def _errors_as_sentences(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._sentence(error) from error

    def _sentence(self, error: sqlite3.Error | OSError) -> HistoryError:
        code = getattr(error, "sqlite_errorcode", None)
        # The low byte is the kind, the rest its details.
        kind = None if code is None else code & 0xFF
        number = error.errno if isinstance(error, OSError) else None
        free = _free_bytes(self.path)
        full = kind == sqlite3.SQLITE_IOERR and free is not None and free < FULL_BELOW_BYTES
        if kind == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EDQUOT) or full:
            room = "an unknown number of" if free is None else f"{free:,}"
            return DiskFull(
                f"There is no room left for the {self._holding.name} at {self._place} ({room} bytes"
                " are free): free some space and try again. What was stored before is kept."
            )
        if kind == sqlite3.SQLITE_READONLY or number in (errno.EROFS, errno.EACCES, errno.EPERM):
            return HistoryError(
                f"{self._name} may be read but not written: give your user the"
                " right to write to this file and its folder, or choose another place with"
                " INGLENOOK_HOME."
            )
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return HistoryError(
                f"{self._name} is damaged or is no database ({error}). {self._holding.if_damaged}"
            )
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return HistoryError(
                f"Another program has held the {self._holding.name} at {self._place} for more"
                f" than {BUSY_TIMEOUT_S:.0f} seconds: close it and try again."
            )
        if kind == sqlite3.SQLITE_CANTOPEN or number is not None:
            return HistoryError(
                f"{self._name} cannot be opened ({error}): check that the folder"
                " is there and that no other file has this name."
            )
        return HistoryError(
            f"{self._name} could not do this ({error}): try again, and restart the"
            " app if it happens twice."
        )


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _may(file: Path, mode: int) -> bool:
    return os.access(file, mode, effective_ids=os.access in os.supports_effective_ids)


def _free_bytes(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return None
