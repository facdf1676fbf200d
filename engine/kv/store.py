"""KV beside the cells: segments in memory and on the disk, within hard budgets.

    cells --put--> RAM --write--> DISK      a conversation's tokens, as they come to rest
    cells <--------blob-----------+         a prompt that begins with them

What is worth least leaves first (`policy.worth`), and never before what stands on it, so that
all that is left can be reached from the first token of its conversation.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.kv.disk import Disk, StoredSegment
from engine.kv.policy import worth
from engine.kv.prefix_tree import Match, PrefixTree
from engine.kv.segment import (
    SEGMENT_TOKENS,
    Belonging,
    Blob,
    Segment,
    checksum_of,
    segment_key,
)
from engine.kv.state_shelf import StateShelf

logger = logging.getLogger(__name__)

MAX_PENDING_BYTES = 64_000_000
"""Blobs that wait for the disk; what comes later waits in RAM for its turn."""

Cut = Callable[[Blob, int, int, int], Blob | None]
"""`KVMemory.cut`, with the cells and the sequence that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KVUsage:
    """Bytes held now and at most, and what the user should know of the disk, or empty."""

    num_segments: int = 0
    ram_bytes: int = 0
    ram_budget: int = 0
    disk_bytes: int = 0
    disk_budget: int = 0
    bytes_written: int = 0
    notice: str = ""


class KVStore:
    """Owned by the engine thread."""

    def __init__(
        self,
        *,
        can_cut: bool,
        max_export_tokens: int,
        ram_budget: int,
        disk_budget: int,
        cut: Cut,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._can_cut = can_cut
        self.segment_tokens = min(SEGMENT_TOKENS, max_export_tokens)
        self._ram_budget = ram_budget
        self._disk_budget = disk_budget
        self._cut = cut
        self._clock = clock
        self._ordinary: PrefixTree | StateShelf = PrefixTree() if can_cut else StateShelf()
        self._canonical: PrefixTree | StateShelf = PrefixTree() if can_cut else StateShelf()
        self._disk: Disk | None = None
        self._of_keys: dict[bytes, Segment] = {}
        # In the order in which they came, so a parent is written before its children.
        self._unwritten: dict[Segment, None] = {}
        self._changed: set[Segment] = set()
        self._last_uses: dict[str, float] = {}
        self._protected: frozenset[Segment] = frozenset()
        self._ram_bytes = 0
        self._notice = ""
        # What was asked before the disk was there holds for it, too.
        self._retained_early: frozenset[str] | None = None
        self._forgotten_early: set[str] = set()

    # Reading

    def match(self, token_ids: Sequence[int], limit: int, *, is_canonical: bool = False) -> Match:
        """The longest stored beginning of `token_ids[:limit]`; `is_canonical`: of that kind."""
        canonical = self._canonical.match(token_ids, limit)
        if is_canonical:
            return canonical
        ordinary = self._ordinary.match(token_ids, limit)
        return canonical if canonical.length > ordinary.length else ordinary

    def blob(self, segment: Segment) -> Blob | None:
        """The KV of a segment, checked. None: it is gone or damaged, and has been removed with
        all that stands on it. What came from the disk is valid until the next but one call."""
        if segment.blob is not None:
            if checksum_of(segment.blob) == segment.checksum:
                return segment.blob
            logger.error("KV in memory is damaged; it is computed again")
        elif segment.is_on_disk and self._disk is not None:
            blob = self._disk.read(segment.key)
            if blob is not None:
                return blob
            logger.warning("KV on the disk is damaged or gone; it is computed again")
        self.remove(segment)
        return None

    def use(self, match: Match, belonging: Belonging) -> None:
        """Note that a conversation goes through these segments now."""
        now = self._clock()
        owner = belonging.owner
        if owner:
            self._last_uses[owner] = now
        for segment, end in match.steps():
            segment.last_used = now
            if owner:
                num_used = end - segment.start
                segment.num_used[owner] = max(segment.num_used.get(owner, 0), num_used)
                segment.is_durable |= belonging.is_durable
                self._note_change(segment)

    def protect(self, segments: Iterable[Segment]) -> None:
        """Keep these until the next call: somebody is about to need them."""
        self._protected = frozenset(segments)

    def prefetch(self, segments: Iterable[Segment]) -> None:
        """These are wanted next, in this order: read them ahead."""
        if self._disk is not None:
            self._disk.prefetch([each.key for each in segments if each.blob is None])

    # Writing

    def put(
        self,
        token_ids: Sequence[int],
        limit: int,
        export: Callable[[int, int], Blob | None],
        belonging: Belonging,
        *,
        is_canonical: bool = False,
    ) -> int:
        """Store the next segment of `token_ids[:limit]`, unless all of it is stored.

        Gives how many tokens are stored now: fewer than `limit` while there is more to store.
        As many as before when there is no room, or the KV could not be had.
        """
        index = self._canonical if is_canonical else self._ordinary
        match = index.match(token_ids, limit)
        self.use(match, belonging)
        if match.length >= limit:
            return limit
        if self._ram_budget == 0:
            return match.length
        start, end = match.length, limit
        if self._can_cut:
            end = min(limit, (start // self.segment_tokens + 1) * self.segment_tokens)
        else:
            # A longer state of a conversation stands beside the shorter one.
            start = 0
        blob = export(start, end)
        if blob is None or not self._make_ram_room(blob.nbytes, keep=match.segments):
            return match.length
        segment = index.add(token_ids[:end], start)
        segment.is_canonical = is_canonical
        segment.checksum = checksum_of(blob)
        self._hold(segment, blob)
        self.use(Match((segment,), end), belonging)
        return end

    def remove(self, segment: Segment) -> None:
        """Give up a segment and all that stands on it, in every tier."""
        for index in (self._ordinary, self._canonical):
            if segment in index:
                self._let_go(index.remove(segment))

    def forget(self, owner: str, paths: Iterable[Sequence[int]] = ()) -> None:
        """Remove what only `owner` uses, except what lies on these token `paths`.

        Of a segment that others go through in part, that part is left.
        """
        self._last_uses.pop(owner, None)
        if self._disk is None:
            self._forgotten_early.add(owner)
        else:
            self._disk.forget_elsewhere(lambda each: each == owner)
        touched = [each for each in self._all() if each.num_used.pop(owner, None) is not None]
        for token_ids in paths:
            self.use(self.match(token_ids, len(token_ids)), Belonging(owner=owner))
        self._remove_unused(touched)

    def retain(self, owners: Iterable[str]) -> None:
        """Remove what belongs to others than these: they were deleted while nobody looked."""
        known = frozenset(owners)
        if self._disk is None:
            self._retained_early = known
        else:
            self._disk.forget_elsewhere(lambda owner: owner not in known)
        touched = [each for each in self._all() if not each.num_used.keys() <= known]
        for segment in touched:
            for owner in segment.num_used.keys() - known:
                del segment.num_used[owner]
        self._remove_unused(touched)

    def forget_all(self) -> None:
        for segment in self._all():
            self.remove(segment)
        self._last_uses.clear()

    def distrust(self, token_ids: Sequence[int], belonging: Belonging) -> None:
        """A computation over these tokens went wrong: give up what no other conversation uses."""
        for index in (self._ordinary, self._canonical):
            for segment in index.match(token_ids, len(token_ids)).segments:
                if segment.num_used.keys() <= {belonging.owner}:
                    self.remove(segment)
                    break

    # The disk

    def attach(self, disk: Disk, stored: Sequence[StoredSegment]) -> None:
        """Begin to use the disk: take in what it holds, and write what has come meanwhile."""
        self._disk = disk
        present = frozenset(self._last_uses)
        disk.remove([each.key for each in stored if not self._take_in(each)])
        if self._retained_early is not None:
            self.retain(self._retained_early | present)
        for owner in self._forgotten_early - present:
            self.forget(owner)
        for segment in self._all():
            self._note_change(segment)
        self.maintain()

    def note(self, notice: str) -> None:
        """Why there is no disk, for the user."""
        self._notice = notice

    def maintain(self) -> None:
        """Give the disk what is due, and take note of what it has done."""
        disk = self._disk
        if disk is None:
            return
        for written in disk.poll():
            segment = self._of_keys.get(written.key)
            if segment is None:
                continue
            if written.error:
                # Without the disk everything works, and is read again after a restart.
                self._notice = written.error
                self._lose_key(segment)
            else:
                segment.is_on_disk = True
        while self._unwritten and disk.num_pending_bytes < MAX_PENDING_BYTES and not self._notice:
            self._write(disk, next(iter(self._unwritten)))
        # One whose parent is being written anew waits for the parent's name.
        changed = [segment for segment in self._changed if segment.key and _has_parent(segment)]
        self._changed.difference_update(changed)
        if changed:
            disk.update([_record(segment) for segment in changed])
        self._keep_disk_budget(disk)

    def close(self, seconds: float) -> None:
        """Finish writing, for at most so long. Harmless twice."""
        disk = self._disk
        if disk is None:
            return
        deadline = time.monotonic() + seconds
        self.maintain()
        while self._unwritten and not self._notice and time.monotonic() < deadline:
            time.sleep(0.002)
            self.maintain()
        disk.close(max(0.0, deadline - time.monotonic()))
        self._disk = None

    # What it takes

    @property
    def is_writing(self) -> bool:
        """The disk has something to do, or to tell."""
        disk = self._disk
        if disk is None or self._notice:
            return False
        return bool(self._unwritten) or disk.num_pending_bytes > 0

    def usage(self) -> KVUsage:
        disk = self._disk
        return KVUsage(
            num_segments=len(self._ordinary) + len(self._canonical),
            ram_bytes=self._ram_bytes,
            ram_budget=self._ram_budget,
            disk_bytes=disk.num_bytes if disk else 0,
            disk_budget=self._disk_budget if disk else 0,
            bytes_written=disk.num_bytes_written if disk else 0,
            notice=self._notice,
        )

    def limit_ram(self, num_bytes: int) -> None:
        """Hold at most so many bytes in memory from now on."""
        self._ram_budget = num_bytes
        self._make_ram_room(0)

    def limit_disk(self, num_bytes: int) -> None:
        """Hold at most so many bytes on the disk from now on."""
        self._disk_budget = num_bytes
        self.maintain()

    def check(self) -> None:
        """The books agree with what is held."""
        self._ordinary.check()
        self._canonical.check()
        segments = self._all()
        assert self._ram_bytes == sum(s.num_bytes for s in segments if s.blob is not None)
        assert self._ram_bytes <= self._ram_budget
        for segment in segments:
            assert segment.blob is not None or segment.is_on_disk
            assert not segment.key or self._of_keys[segment.key] is segment
            assert all(0 < count <= segment.num_tokens for count in segment.num_used.values())
            if segment.parent is not None:
                assert segment.num_used.keys() <= segment.parent.num_used.keys()
        assert set(self._of_keys.values()) <= set(segments)
        assert set(self._unwritten) <= set(segments)

    def _all(self) -> list[Segment]:
        return [*self._ordinary, *self._canonical]

    def _worth(self, segment: Segment) -> float:
        owners = segment.num_used
        # Every conversation that went through it has gone another way since.
        is_old_branch = bool(owners) and all(
            self._last_uses.get(owner, 0.0) > segment.last_used for owner in owners
        )
        return worth(segment.last_used, is_old_branch=is_old_branch, is_shared=len(owners) > 1)

    def _hold(self, segment: Segment, blob: Blob) -> None:
        segment.blob = blob
        segment.num_bytes = blob.nbytes
        self._ram_bytes += blob.nbytes

    def _drop_blob(self, segment: Segment) -> None:
        if segment.blob is not None:
            self._ram_bytes -= segment.num_bytes
            segment.blob = None

    def _make_ram_room(self, num_bytes: int, keep: Sequence[Segment] = ()) -> bool:
        if num_bytes > self._ram_budget:
            return False
        while self._ram_bytes + num_bytes > self._ram_budget:
            evictable = [
                each
                for each in self._all()
                if each.blob is not None
                and (
                    each.is_on_disk
                    or not (each.children or each in self._protected or each in keep)
                )
            ]
            if not evictable:
                return False
            # With a copy on the disk, losing the one in memory costs little.
            worst = min(evictable, key=lambda each: (not each.is_on_disk, self._worth(each)))
            if worst.is_on_disk:
                self._drop_blob(worst)
            else:
                self.remove(worst)
        return True

    def _keep_disk_budget(self, disk: Disk) -> None:
        excess = disk.num_bytes + disk.num_pending_bytes - self._disk_budget
        if excess > 0:
            excess -= disk.make_room(excess)
        while excess > 0:
            leaves = [
                leaf
                for index in (self._ordinary, self._canonical)
                for leaf in index.leaves()
                if leaf.key and leaf not in self._protected
            ]
            if not leaves:
                return
            worst = min(leaves, key=self._worth)
            excess -= worst.num_bytes
            self.remove(worst)

    def _note_change(self, segment: Segment) -> None:
        if segment.key:
            self._changed.add(segment)
        elif segment.is_durable and segment.blob is not None:
            self._unwritten.setdefault(segment)

    def _write(self, disk: Disk, segment: Segment) -> None:
        del self._unwritten[segment]
        if segment.blob is None or not _has_parent(segment):
            return
        segment.key = segment_key(
            disk.namespace, segment.prefix(), segment.start, segment.is_canonical
        )
        self._of_keys[segment.key] = segment
        disk.write(_record(segment), segment.blob)

    def _take_in(self, stored: StoredSegment) -> bool:
        """Link a segment of the disk. False: what is held already makes it useless."""
        index = self._canonical if stored.is_canonical else self._ordinary
        parent = self._of_keys.get(stored.parent_key) if stored.parent_key else None
        if stored.parent_key and parent is None:
            return False
        prefix = parent.prefix()[: stored.start] if parent is not None else []
        prefix += stored.token_ids
        match = index.match(prefix, len(prefix))
        twin = match.segments[-1] if match.length == len(prefix) else None
        if twin is not None and (twin.start, twin.token_ids) == (stored.start, stored.token_ids):
            # Read again before the disk was there.
            self._unwritten.pop(twin, None)
            twin.num_used.update(stored.num_used)
            twin.key, twin.checksum, twin.is_on_disk = stored.key, stored.checksum, True
            self._drop_blob(twin)
            twin.num_bytes = stored.num_bytes
            self._of_keys[twin.key] = twin
            return True
        if match.length > stored.start and self._can_cut:
            return False
        segment = Segment(
            parent,
            stored.start,
            stored.token_ids,
            num_used=dict(stored.num_used),
            is_canonical=stored.is_canonical,
            is_durable=True,
            last_used=stored.last_used,
            num_bytes=stored.num_bytes,
            checksum=stored.checksum,
            key=stored.key,
            is_on_disk=True,
        )
        index.link(segment)
        self._of_keys[segment.key] = segment
        for owner in segment.num_used:
            self._last_uses[owner] = max(self._last_uses.get(owner, 0.0), segment.last_used)
        return True

    def _remove_unused(self, touched: Iterable[Segment]) -> None:
        """Of segments that lost an owner: give up what is nobody's, and the ends that are."""
        for segment in touched:
            self._note_change(segment)
            if segment not in self._ordinary and segment not in self._canonical:
                continue
            num_used = max(segment.num_used.values(), default=0)
            if num_used == 0:
                self.remove(segment)
            elif num_used < segment.num_tokens:
                self._shorten(segment, num_used)

    def _shorten(self, segment: Segment, num_tokens: int) -> None:
        index = self._canonical if segment.is_canonical else self._ordinary
        whole = self.blob(segment)
        if whole is None:
            return
        blob = self._cut(whole, segment.start, segment.end, num_tokens)
        if blob is None or not isinstance(index, PrefixTree):
            self.remove(segment)
            return
        self._let_go(index.shorten(segment, num_tokens))
        # The file holds the words that must go, and its name stands for them.
        self._lose_key(segment)
        self._drop_blob(segment)
        segment.is_on_disk = False
        segment.checksum = checksum_of(blob)
        if not self._make_ram_room(blob.nbytes, keep=segment.path()):
            self._let_go(index.remove(segment))
            return
        self._hold(segment, blob)
        self._note_change(segment)
        for child in segment.children.values():
            self._note_change(child)

    def _lose_key(self, segment: Segment) -> None:
        if segment.key:
            del self._of_keys[segment.key]
            if self._disk is not None:
                self._disk.remove([segment.key])
            segment.key = b""

    def _let_go(self, segments: Iterable[Segment]) -> None:
        """Of segments that are out of their index: their blobs, files and marks."""
        for segment in segments:
            self._drop_blob(segment)
            self._lose_key(segment)
            self._unwritten.pop(segment, None)
            self._changed.discard(segment)


def _has_parent(segment: Segment) -> bool:
    """What it stands on has a name on the disk."""
    return segment.parent is None or bool(segment.parent.key)


def _record(segment: Segment) -> StoredSegment:
    return StoredSegment(
        key=segment.key,
        parent_key=segment.parent.key if segment.parent is not None else b"",
        start=segment.start,
        token_ids=segment.token_ids,
        is_canonical=segment.is_canonical,
        num_used=dict(segment.num_used),
        last_used=segment.last_used,
        num_bytes=segment.num_bytes,
        checksum=segment.checksum,
    )
