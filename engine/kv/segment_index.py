"""What the files of the disk tier hold, in SQLite, so that none is opened at the start.

Only this file knows SQLite. Its errors leave as OSError, as those of the files do; an index that
cannot be believed is `IndexDamaged`, and is made anew from the files.
"""

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xxhash import xxh3_64

from engine.kv.disk import StoredSegment

Name = tuple[bytes, bytes]
"""Namespace and key: what a segment is called among those of all models."""

SCHEMA_VERSION = 1
BUSY_SECONDS = 2.0

_SCHEMA = """
create table segment (
    namespace blob not null check (typeof(namespace) = 'blob' and length(namespace) = 32),
    key blob not null check (typeof(key) = 'blob' and length(key) = 16),
    parent_key blob not null,
    start integer not null,
    token_ids blob not null check (typeof(token_ids) = 'blob'),
    is_canonical integer not null,
    num_used blob not null,
    last_used real not null check (typeof(last_used) = 'real'),
    num_bytes integer not null,
    checksum blob not null,
    num_file_bytes integer not null check (typeof(num_file_bytes) = 'integer'),
    row_checksum blob not null,
    primary key (namespace, key)
)
"""

# In the order of `_values`, and at last their checksum.
_COLUMNS = (
    "key",
    "parent_key",
    "start",
    "token_ids",
    "is_canonical",
    "num_used",
    "last_used",
    "num_bytes",
    "checksum",
    "row_checksum",
)

_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}


# The statements are ours and right: an error in one means that the tables are not ours.
_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)


class IndexDamaged(OSError):
    """It is no database, or one of another version, or its parts do not fit together."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A row without its tokens. Whoever lists files reads no more than this."""

    namespace: bytes
    key: bytes
    num_bytes: int
    """Of the whole file."""
    last_used: float
    num_tokens: int
    num_used: Mapping[str, int]
    """How many of its tokens each owner's conversations go through."""

    def is_needed(self, is_gone: Callable[[str], bool]) -> bool:
        """Nobody has gone who went through it, or somebody else goes through all of it."""
        left = [count for owner, count in self.num_used.items() if not is_gone(owner)]
        return len(left) == len(self.num_used) or max(left, default=0) >= self.num_tokens


class SegmentIndex:
    """Owned by one thread at a time. Nobody else can open the same file meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open it, or make an empty one. Raises IndexDamaged; OSError: EBUSY when it is in use."""
        self.path = path
        # SQLite would let others read a file that it makes itself.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with _errors(path):
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            with _errors(path):
                self._prepare()
        except OSError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        db = self._db
        # One process writes at a time, and the lock goes away with it, however it ends.
        db.execute("pragma locking_mode = exclusive")
        # What was deleted must not stay in the pages that it lay in.
        db.execute("pragma secure_delete = on")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.execute("begin immediate")
        (version,) = db.execute("pragma user_version").fetchone()
        (num_tables,) = db.execute("select count(*) from sqlite_master").fetchone()
        if version == 0 and num_tables == 0:
            db.execute(_SCHEMA)
            db.execute(f"pragma user_version = {SCHEMA_VERSION}")
        elif version != SCHEMA_VERSION:
            raise IndexDamaged(errno.EINVAL, f"version {version}, not {SCHEMA_VERSION}")
        db.execute(f"select {', '.join(_COLUMNS)} from segment limit 0")
        # It also finds rows of other types and lengths than the table asks for.
        (verdict,) = db.execute("pragma quick_check(1)").fetchone()
        if verdict != "ok":
            raise IndexDamaged(errno.EINVAL, verdict)
        db.commit()

    @property
    def num_bytes(self) -> int:
        """Of the database and what belongs to it."""
        return sum(_size(path) for path in index_files(self.path))

    def files(self) -> list[IndexedFile]:
        """All rows of all namespaces, the least recently used first."""
        with _errors(self.path):
            rows = self._db.execute(
                "select namespace, key, num_file_bytes, last_used, length(token_ids) / 4, num_used"
                " from segment order by last_used"
            ).fetchall()
        return [
            IndexedFile(namespace, key, num_bytes, last_used, num_tokens, _num_used(num_used))
            for namespace, key, num_bytes, last_used, num_tokens, num_used in rows
        ]

    def segments(self, namespace: bytes) -> Iterator[StoredSegment]:
        """The sound rows of one namespace, in no order."""
        with _errors(self.path):
            rows = self._db.execute(
                f"select {', '.join(_COLUMNS)} from segment where namespace = ?",
                (namespace,),
            ).fetchall()
        for *values, row_checksum in rows:
            if _row_checksum(*values) == row_checksum:
                yield _segment(*values)

    def put(self, namespace: bytes, segment: StoredSegment, num_file_bytes: int) -> None:
        values = _values(segment)
        with _errors(self.path):
            self._db.execute(
                f"insert or replace into segment ({', '.join(_COLUMNS)}, namespace, num_file_bytes)"
                f" values (?{', ?' * (len(_COLUMNS) + 1)})",
                (*values, _row_checksum(*values), namespace, num_file_bytes),
            )

    def update(self, namespace: bytes, segments: Iterable[StoredSegment]) -> None:
        """Note what may change. Segments that have no row get none."""
        rows = [
            (values[1], values[5], values[6], _row_checksum(*values), namespace, values[0])
            for values in map(_values, segments)
        ]
        with _errors(self.path):
            self._db.executemany(
                "update segment set parent_key = ?, num_used = ?, last_used = ?, row_checksum = ?"
                " where namespace = ? and key = ?",
                rows,
            )

    def delete(self, names: Iterable[Name]) -> None:
        """Remove rows; harmless where there is none."""
        with _errors(self.path):
            self._db.executemany("delete from segment where namespace = ? and key = ?", names)

    def commit(self) -> None:
        with _errors(self.path):
            self._db.commit()

    def rollback(self) -> None:
        with suppress(sqlite3.Error):
            self._db.rollback()

    def scrub(self) -> None:
        """After a commit: the log of changes holds what was deleted, so empty it."""
        with _errors(self.path):
            self._db.execute("pragma wal_checkpoint(truncate)").fetchone()

    def close(self) -> None:
        """What was not committed is forgotten."""
        with suppress(sqlite3.Error):
            self._db.close()


def open_index(path: Path) -> SegmentIndex:
    """The index of a folder; an empty one when it is missing or damaged. Raises OSError."""
    try:
        return SegmentIndex(path)
    except IndexDamaged:
        remove_index(path)
        return SegmentIndex(path)


def remove_index(path: Path) -> None:
    for each in index_files(path):
        each.unlink(missing_ok=True)


def index_files(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal"))


def _num_used(text: bytes) -> dict[str, int]:
    """Of a row whose checksum nobody asked for; a damaged one has no owner."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _values(
    segment: StoredSegment,
) -> tuple[bytes, bytes, int, bytes, int, bytes, float, int, bytes]:
    return (
        segment.key,
        segment.parent_key,
        segment.start,
        np.array(segment.token_ids, "<i4").tobytes(),
        int(segment.is_canonical),
        json.dumps(dict(segment.num_used)).encode(),
        segment.last_used,
        segment.num_bytes,
        # SQLite's integers have a sign.
        segment.checksum.to_bytes(8, "little"),
    )


def _segment(
    key: bytes,
    parent_key: bytes,
    start: int,
    token_ids: bytes,
    is_canonical: int,
    num_used: bytes,
    last_used: float,
    num_bytes: int,
    checksum: bytes,
) -> StoredSegment:
    return StoredSegment(
        key=key,
        parent_key=parent_key,
        start=start,
        token_ids=tuple(np.frombuffer(token_ids, "<i4").tolist()),
        is_canonical=bool(is_canonical),
        num_used=json.loads(num_used),
        last_used=last_used,
        num_bytes=num_bytes,
        checksum=int.from_bytes(checksum, "little"),
    )


def _row_checksum(
    key: bytes, parent_key: bytes, start: int, token_ids: bytes, *others: object
) -> bytes:
    # Tokens that a bad block changed would give a conversation the KV of other words.
    checksum = xxh3_64(repr((key, parent_key, start, others)).encode())
    checksum.update(token_ids)
    return checksum.digest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        # Even a message may hold what a damaged page holds.
        raise IndexDamaged(errno.EINVAL, "it is damaged", str(path)) from error
    except sqlite3.Error as error:
        # Only the lower byte names the kind.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _DAMAGED:
            raise IndexDamaged(errno.EINVAL, str(error), str(path)) from error
        raise OSError(_ERRNO.get(code, errno.EIO), str(error), str(path)) from error
