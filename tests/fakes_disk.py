"""A disk in a dictionary: it writes when the test says so, and can be damaged, full or slow."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from engine.kv.disk import StoredSegment, Written
from engine.kv.segment import Blob, checksum_of


class FakeDisk:
    """`is_slow`: nothing is written until `work` is called."""

    namespace = b"fake namespace"

    def __init__(self, *, is_slow: bool = False) -> None:
        self.files: dict[bytes, Blob] = {}
        self.rows: dict[bytes, StoredSegment] = {}
        self.is_slow = is_slow
        self.error = ""
        self.other_bytes = 0
        self.others: list[str] = []
        """Whose words other models' segments hold."""
        self.num_bytes_written = 0
        self.is_closed = False
        self._queue: list[tuple[StoredSegment, Blob]] = []
        self._done: list[Written] = []

    def work(self) -> None:
        """Write what waits."""
        for segment, blob in self._queue:
            if self.error:
                self._done.append(Written(segment.key, self.error))
                continue
            self.files[segment.key] = blob.copy()
            self.rows[segment.key] = segment
            self.num_bytes_written += blob.nbytes
            self._done.append(Written(segment.key))
        self._queue.clear()

    def damage(self, key: bytes) -> None:
        self.files[key][0] ^= 1

    @property
    def num_bytes(self) -> int:
        return self.other_bytes + sum(blob.nbytes for blob in self.files.values())

    @property
    def num_pending_bytes(self) -> int:
        return sum(blob.nbytes for _, blob in self._queue)

    def open(self) -> Sequence[StoredSegment]:
        rows: dict[bytes, StoredSegment] = {b"": None}  # type: ignore[dict-item]
        for row in sorted(self.rows.values(), key=lambda row: row.start):
            if row.parent_key in rows:
                rows[row.key] = row
        del rows[b""]
        self.remove(self.rows.keys() - rows.keys())
        return list(rows.values())

    def write(self, segment: StoredSegment, blob: Blob) -> None:
        assert segment.checksum == checksum_of(blob)
        assert segment.start == 0 or segment.parent_key, "a branch without a trunk"
        self._queue.append((segment, blob))
        if not self.is_slow:
            self.work()

    def update(self, segments: Iterable[StoredSegment]) -> None:
        for segment in segments:
            self._queue = [
                (segment if old.key == segment.key else old, blob) for old, blob in self._queue
            ]
            assert segment.start == 0 or segment.parent_key, "a branch without a trunk"
            if segment.key in self.rows:
                self.rows[segment.key] = replace(segment)

    def remove(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._queue = [(old, blob) for old, blob in self._queue if old.key != key]
            self.files.pop(key, None)
            self.rows.pop(key, None)

    def forget_elsewhere(self, is_gone: Callable[[str], bool]) -> None:
        self.others = [owner for owner in self.others if not is_gone(owner)]

    def make_room(self, num_bytes: int) -> int:
        freed = min(num_bytes, self.other_bytes)
        self.other_bytes -= freed
        return freed

    def prefetch(self, keys: Sequence[bytes]) -> None:
        pass

    def read(self, key: bytes) -> Blob | None:
        blob = self.files.get(key)
        if blob is None or checksum_of(blob) != self.rows[key].checksum:
            self.remove([key])
            return None
        return np.array(blob)

    def poll(self) -> list[Written]:
        done, self._done = self._done, []
        return done

    def close(self, seconds: float) -> None:
        self.work()
        self.is_closed = True
