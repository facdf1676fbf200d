"""Which segments are on the disk, which should be, and what has to leave it for them.

    waits       it may be on the disk, has KV in memory, and no name yet
    has a key   it is on the disk, or on its way there

A parent has its name before its children, and keeps it as long as they do, so that everything on
the disk can be reached from the first token of its conversation.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from engine.kv.disk import Disk, StoredSegment
from engine.kv.segment import Blob, Segment, segment_key

MAX_PENDING_BYTES = 64_000_000
"""Blobs that wait for the disk; what comes later waits in RAM for its turn."""


class DiskTier:
    """Owned by the engine thread. Without a disk nothing is on it, and all else works.

    `worth` orders what could leave the disk, and `give_up` takes what leaves the last tier that
    held it out of the store.
    """

    def __init__(
        self,
        budget: int,
        *,
        worth: Callable[[Segment], float],
        give_up: Callable[[Segment], None],
    ) -> None:
        self.budget = budget
        self.notice = ""
        """What the user should know, such as that the disk is full; then nothing is written."""
        self._worth = worth
        self._give_up = give_up
        self._disk: Disk | None = None
        self._of_keys: dict[bytes, Segment] = {}
        # In the order in which they came, so a parent is written before its children.
        self._unwritten: dict[Segment, None] = {}
        self._changed: set[Segment] = set()

    @property
    def is_attached(self) -> bool:
        return self._disk is not None

    @property
    def is_writing(self) -> bool:
        """The disk has something to do, or to tell."""
        if self._disk is None or self.notice:
            return False
        return bool(self._unwritten) or self._disk.num_pending_bytes > 0

    @property
    def num_bytes(self) -> int:
        return self._disk.num_bytes if self._disk is not None else 0

    @property
    def num_bytes_written(self) -> int:
        return self._disk.num_bytes_written if self._disk is not None else 0

    def attach(self, disk: Disk) -> None:
        self._disk = disk

    def find(self, key: bytes) -> Segment | None:
        return self._of_keys.get(key)

    def adopt(self, segment: Segment, key: bytes) -> None:
        """It is on the disk under this name."""
        self._unwritten.pop(segment, None)
        segment.key, segment.is_on_disk = key, True
        self._of_keys[key] = segment

    def read(self, segment: Segment) -> Blob | None:
        """None: it is gone or damaged. Valid until the next but one call."""
        return None if self._disk is None else self._disk.read(segment.key)

    def prefetch(self, segments: Iterable[Segment]) -> None:
        if self._disk is not None:
            self._disk.prefetch([each.key for each in segments if each.blob is None])

    def note_change(self, segment: Segment) -> None:
        """It came, or who goes through it has changed."""
        if segment.key:
            self._changed.add(segment)
        elif segment.kind.is_durable and segment.blob is not None:
            self._unwritten.setdefault(segment)

    def let_go(self, segment: Segment) -> None:
        """It has left the store."""
        self.lose(segment)
        self._unwritten.pop(segment, None)

    def lose(self, segment: Segment) -> None:
        """It is not to be on the disk any more, nor under its name what stands there."""
        self._changed.discard(segment)
        if segment.key:
            del self._of_keys[segment.key]
            self.remove([segment.key])
        segment.key, segment.is_on_disk = b"", False

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove files that no segment stands for."""
        if self._disk is not None:
            self._disk.remove(keys)

    def forget_elsewhere(self, is_gone: Callable[[str], bool]) -> None:
        """Remove other models' segments with words that only gone owners use."""
        if self._disk is not None:
            self._disk.forget_elsewhere(is_gone)

    def maintain(self, keep: frozenset[Segment]) -> None:
        """Give the disk what is due, and take note of what it has done. What is in `keep` and
        nowhere else stays."""
        disk = self._disk
        if disk is None:
            return
        self._take_note(disk)
        while self._unwritten and disk.num_pending_bytes < MAX_PENDING_BYTES and not self.notice:
            self._write(disk, next(iter(self._unwritten)), keep)
        # One whose parent is being written anew waits for the parent's name.
        changed = [segment for segment in self._changed if has_parent(segment)]
        self._changed.difference_update(changed)
        if changed:
            disk.update([_record(segment) for segment in changed])
        self._make_room(disk, 0, keep)

    def close(self, seconds: float) -> None:
        """Finish writing, for at most so long. Harmless twice."""
        disk = self._disk
        if disk is None:
            return
        deadline = time.monotonic() + seconds
        self.maintain(frozenset())
        while self._unwritten and not self.notice and time.monotonic() < deadline:
            time.sleep(0.002)
            self.maintain(frozenset())
        disk.close(max(0.0, deadline - time.monotonic()))
        self._disk = None

    def check(self, segments: set[Segment]) -> None:
        assert set(self._of_keys.values()) <= segments
        assert set(self._unwritten) <= segments
        for segment in segments:
            assert not segment.key or self._of_keys[segment.key] is segment
            assert segment.key or not segment.is_on_disk
            assert segment.kind.is_durable or not segment.key, "private words on the disk"

    def _take_note(self, disk: Disk) -> None:
        for written in disk.poll():
            segment = self._of_keys.get(written.key)
            if segment is None:
                continue
            if written.error:
                # Without the disk everything works, and is read again after a restart.
                self.notice = written.error
                self.lose(segment)
            else:
                segment.is_on_disk = True

    def _write(self, disk: Disk, segment: Segment, keep: frozenset[Segment]) -> None:
        del self._unwritten[segment]
        if segment.blob is None or not has_parent(segment):
            return
        if not self._make_room(disk, segment.num_bytes, keep.union(segment.path())):
            return
        segment.key = segment_key(
            disk.namespace, segment.prefix(), segment.start, segment.kind.is_canonical
        )
        self._of_keys[segment.key] = segment
        disk.write(_record(segment), segment.blob)
        for child in segment.children.values():
            # They may have been waiting for this name.
            self.note_change(child)

    def _make_room(self, disk: Disk, num_bytes: int, keep: frozenset[Segment]) -> bool:
        """Let go of what is worth least until so many bytes fit. False: they cannot."""
        if num_bytes + sum(each.num_bytes for each in keep if each.key) > self.budget:
            return False
        excess = disk.num_bytes + disk.num_pending_bytes + num_bytes - self.budget
        if excess > 0:
            excess -= disk.make_room(excess)
        while excess > 0:
            ends = [
                each
                for each in self._of_keys.values()
                if not (each in keep or any(child.key for child in each.children.values()))
            ]
            if not ends:
                return False
            worst = min(ends, key=self._worth)
            excess -= worst.num_bytes
            if worst.blob is not None:
                self.lose(worst)
            else:
                self._give_up(worst)
        return True


def has_parent(segment: Segment) -> bool:
    """What it stands on has a name on the disk."""
    return segment.parent is None or bool(segment.parent.key)


def _record(segment: Segment) -> StoredSegment:
    return StoredSegment(
        key=segment.key,
        parent_key=segment.parent.key if segment.parent is not None else b"",
        start=segment.start,
        token_ids=segment.token_ids,
        is_canonical=segment.kind.is_canonical,
        num_used=dict(segment.num_used),
        last_used=segment.last_used,
        num_bytes=segment.num_bytes,
        checksum=segment.checksum,
    )
