"""The disk tier in a folder: what the engine thread sees of it.

engine thread   open, read, the books of what is there     --commands-->   writer thread
                poll                                       <--outcomes--   files, index
                prefetch                                   --keys------>   reader thread
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from queue import Empty

from engine.errors import HomeError
from engine.kv.disk import StoredSegment, Written
from engine.kv.disk_inventory import reachable, reconcile, remove_unused
from engine.kv.disk_writer import DiskWriter, Remove, Update, Write
from engine.kv.segment import Blob
from engine.kv.segment_file import NAMESPACE_BYTES, namespace_folder, segment_path
from engine.kv.segment_index import (
    IndexDamaged,
    IndexedFile,
    SegmentIndex,
    open_index,
    remove_index,
)
from engine.kv.segment_reader import SegmentReader

INDEX_NAME = "index.sqlite3"


class DiskFolder:
    """Owned by the engine thread. Everything may be called at any time; before `open` and after
    `close` there is nothing in it and nothing goes in."""

    def __init__(
        self, folder: Path, namespace: bytes, clock: Callable[[], float] = time.time
    ) -> None:
        if len(namespace) != NAMESPACE_BYTES:
            raise ValueError(f"a namespace has {NAMESPACE_BYTES} bytes, not {len(namespace)}")
        self._folder = folder
        self._namespace = namespace
        self._clock = clock
        self._writer: DiskWriter | None = None
        self._reader: SegmentReader | None = None
        # Lengths of files, as they are when all that was sent is done.
        self._files: dict[bytes, int] = {}
        self._num_file_bytes = 0
        # Of other models, the least recently used first.
        self._others: list[IndexedFile] = []
        self._pending: dict[bytes, Write] = {}
        self._num_pending_bytes = 0
        self._num_bytes_written = 0

    @property
    def namespace(self) -> bytes:
        return self._namespace

    @property
    def num_bytes(self) -> int:
        index = self._writer.num_index_bytes if self._writer is not None else 0
        return self._num_file_bytes + index

    @property
    def num_pending_bytes(self) -> int:
        return self._num_pending_bytes

    @property
    def num_bytes_written(self) -> int:
        return self._num_bytes_written

    def open(self) -> Sequence[StoredSegment]:
        """Raises HomeError when the folder cannot be used; then there is no disk tier."""
        try:
            stored, index = self._open()
        except OSError as error:
            raise HomeError(
                f"What was read of conversations cannot be kept in {self._folder}"
                f" ({error.strerror}): make it a folder that only this app uses and that can be"
                " written; until then it is kept in memory alone."
            ) from error
        self._writer = DiskWriter(self._folder, self._namespace, index)
        self._writer.start()
        self._reader = SegmentReader(self._namespace, self._path_of)
        return stored

    def write(self, segment: StoredSegment, blob: Blob) -> None:
        assert blob.nbytes == segment.num_bytes
        if self._writer is None:
            return
        self._cancel(segment.key)
        write = Write(segment, blob)
        self._pending[segment.key] = write
        self._num_pending_bytes += blob.nbytes
        self._writer.send(write)

    def update(self, segments: Iterable[StoredSegment]) -> None:
        if self._writer is not None:
            self._writer.send(Update(tuple(segments)))

    def remove(self, keys: Iterable[bytes]) -> None:
        names = [(self._namespace, key) for key in keys]
        for _, key in names:
            self._cancel(key)
            self._num_file_bytes -= self._files.pop(key, 0)
        if self._writer is not None and names:
            self._writer.send(Remove(names))

    def forget_elsewhere(self, is_gone: Callable[[str], bool]) -> None:
        unneeded = [other for other in self._others if not other.is_needed(is_gone)]
        self._remove_others(unneeded)

    def make_room(self, num_bytes: int) -> int:
        unlucky: list[IndexedFile] = []
        freed = 0
        for other in self._others:
            if freed >= num_bytes:
                break
            unlucky.append(other)
            freed += other.num_bytes
        self._remove_others(unlucky)
        return freed

    def _remove_others(self, files: Sequence[IndexedFile]) -> None:
        names = [(each.namespace, each.key) for each in files]
        gone = set(names)
        self._others = [each for each in self._others if (each.namespace, each.key) not in gone]
        self._num_file_bytes -= sum(each.num_bytes for each in files)
        if self._writer is not None and names:
            self._writer.send(Remove(names))

    def prefetch(self, keys: Sequence[bytes]) -> None:
        if self._reader is not None:
            self._reader.prefetch(key for key in keys if key in self._files)

    def read(self, key: bytes) -> Blob | None:
        num_bytes = self._files.get(key)
        if num_bytes is None or self._reader is None:
            return None
        blob = self._reader.read(key, num_bytes)
        if blob is None:
            self.remove([key])
        return blob

    def poll(self) -> list[Written]:
        written: list[Written] = []
        if self._writer is None:
            return written
        # Asked first: what a thread that has ended since then did is seen below.
        is_alive = self._writer.is_alive
        while True:
            try:
                outcome = self._writer.outcomes.get_nowait()
            except Empty:
                break
            key = outcome.write.segment.key
            if self._pending.get(key) is not outcome.write:
                # Cancelled too late; the removal comes after it.
                continue
            self._cancel(key)
            if not outcome.error:
                self._num_file_bytes += outcome.num_bytes - self._files.get(key, 0)
                self._files[key] = outcome.num_bytes
                self._num_bytes_written += outcome.num_bytes
            written.append(Written(key, outcome.error))
        if not is_alive:
            error = "The disk is not written any more after a fault in the app: start it again."
            for key in list(self._pending):
                self._cancel(key)
                written.append(Written(key, error))
        return written

    def close(self, seconds: float) -> None:
        self._reader = None
        if self._writer is not None:
            self._writer.stop(seconds)
            self._writer = None
        self._files.clear()
        self._others.clear()
        self._pending.clear()
        self._num_file_bytes = self._num_pending_bytes = 0

    def _open(self) -> tuple[Sequence[StoredSegment], SegmentIndex]:
        make_private(self._folder)
        own = namespace_folder(self._folder, self._namespace)
        make_private(own)
        # The time of the last use, also for a folder in which nothing changes.
        os.utime(own)
        remove_unused(self._folder, self._namespace, self._clock())
        path = self._folder / INDEX_NAME
        index = open_index(path)
        try:
            try:
                return self._load(index), index
            except IndexDamaged:
                index.close()
                remove_index(path)
                index = open_index(path)
                return self._load(index), index
        except OSError:
            index.close()
            raise

    def _load(self, index: SegmentIndex) -> Sequence[StoredSegment]:
        rows = reconcile(self._folder, index)
        stored = reachable(list(index.segments(self._namespace)))
        own = {row.key: row.num_bytes for row in rows if row.namespace == self._namespace}
        self._files = {segment.key: own.pop(segment.key) for segment in stored}
        # Unreachable, or a row that is not as it was written.
        for key in own:
            self._path_of(key).unlink(missing_ok=True)
        index.delete((self._namespace, key) for key in own)
        index.commit()
        index.scrub()
        self._others = [row for row in rows if row.namespace != self._namespace]
        self._num_file_bytes = sum(self._files.values())
        self._num_file_bytes += sum(other.num_bytes for other in self._others)
        return stored

    def _path_of(self, key: bytes) -> Path:
        return segment_path(self._folder, self._namespace, key)

    def _cancel(self, key: bytes) -> None:
        """Forget a write that waits; harmless when there is none."""
        write = self._pending.pop(key, None)
        if write is not None:
            self._num_pending_bytes -= write.segment.num_bytes
            write.blob = None


def make_private(folder: Path) -> None:
    """A folder for this user only. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "nt" and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
