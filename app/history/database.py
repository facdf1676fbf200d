"""The history's SQLite file: one thread owns the only connection, everyone else sends it work.

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


class _Call(NamedTuple):
    work: Callable[[], Any]
    result: Future[Any]


class Database:
    """The open history. May be shared by threads; only the store thread touches the connection.

    Opening creates the file (readable by its owner only) or migrates it, and raises what is
    wrong with it; the file is never deleted or replaced. `close()` finishes what was sent.
    Without a path it is a history in memory: no file is ever made for it.
    """

    def __init__(self, path: Path | None, steps: Sequence[Step] = MIGRATIONS) -> None:
        self.path = path
        self.backups = None if path is None else Backups(path)
        self._steps = steps
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._tables: Tables | None = None
        opened: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._serve, args=(opened,), name="history-store", daemon=True
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
                        HistoryError("The history is closed: restart the app to go on.")
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

    def _open(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives -wal and -shm the mode of the file it finds.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(self._place, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        tables = self._tables = Tables(connection, execute_plugins=False)
        found, known = version(tables), len(self._steps)
        if found > known:
            raise DatabaseNewer(
                f"The history at {self._place} was written by a newer version of the app (format"
                f" {found}; this version reads up to {known}): update the app to open it."
                " Nothing was changed."
            )
        tables.execute("pragma journal_mode = wal")
        # FULL syncs every commit: in WAL mode, NORMAL survives a killed app but may lose the
        # last messages with the power.
        tables.execute("pragma synchronous = full")
        tables.execute("pragma secure_delete = on")
        # Chats do not belong into files of the system's temporary folder.
        tables.execute("pragma temp_store = memory")
        tables.execute("pragma foreign_keys = on")
        if found < known:
            if tables.table_names() and self.backups is not None:
                self.backups.make(connection, found)
            migrate(tables, self._steps)
        # A purge that was cut off after its commit leaves text in the log. A disk too full for
        # this is no reason not to show the chats.
        with contextlib.suppress(sqlite3.OperationalError):
            tables.execute("pragma wal_checkpoint(truncate)").fetchall()

    def _in_transaction(self, fn: Callable[[Tables], T]) -> T:
        tables = self._tables
        assert tables is not None
        # `immediate` waits for another process here, where nothing has been read yet.
        tables.execute("begin immediate")
        try:
            value = fn(tables)
            tables.execute("commit")
        finally:
            tables.rollback()
        return value

    def _erase(self, ids: Sequence[str], fn: Callable[[Tables], T]) -> T:
        def delete_and_merge(tables: Tables) -> T:
            value = fn(tables)
            # The text index keeps what was deleted until its parts are merged.
            for index in ("conversation_fts", "message_fts"):
                tables.execute(f"insert into {index}({index}) values ('optimize')")
            return value

        # First the backups: if this fails, the chat is still there to be deleted again.
        if self.backups is not None:
            self.backups.forget(ids)
        value = self._in_transaction(delete_and_merge)
        assert self._tables is not None
        (busy, _, _) = self._tables.execute("pragma wal_checkpoint(truncate)").fetchone()
        if busy:
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
                f"There is no room left for the history at {self._place} ({room} bytes are free):"
                " free some space and try again. What was stored before is kept."
            )
        if kind == sqlite3.SQLITE_READONLY or number in (errno.EROFS, errno.EACCES, errno.EPERM):
            return HistoryError(
                f"The history at {self._place} may be read but not written: give your user the"
                " right to write to this file and its folder, or choose another place with"
                " INGLENOOK_HOME."
            )
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return HistoryError(
                f"The history at {self._place} is damaged or is no database ({error}). It was left"
                " as it is: move it away, and put a backup in its place or start empty."
            )
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return HistoryError(
                f"Another program has held the history at {self._place} for more than"
                f" {BUSY_TIMEOUT_S:.0f} seconds: close it and try again."
            )
        if kind == sqlite3.SQLITE_CANTOPEN or number is not None:
            return HistoryError(
                f"The history at {self._place} cannot be opened ({error}): check that the folder"
                " is there and that no other file has this name."
            )
        return HistoryError(
            f"The history at {self._place} could not do this ({error}): try again, and restart the"
            " app if it happens twice."
        )


def _free_bytes(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return None
