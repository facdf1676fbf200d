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
from engine.kv.disk_tier import DiskTier
from engine.kv.policy import worth
from engine.kv.prefix_index import PrefixIndex
from engine.kv.prefix_tree import Match
from engine.kv.segment import (
    SEGMENT_TOKENS,
    Belonging,
    Blob,
    Kind,
    Segment,
    checksum_of,
    users_of,
)

logger = logging.getLogger(__name__)

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


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Whose words were to go, before the disk was there to lose them. Of an owner with `paths`
    what lies on these stays."""

    has_left: Callable[[str], bool]
    owner: str = ""
    paths: Sequence[Sequence[int]] = ()

    def is_gone(self, name: str) -> bool:
        """Of a name of `Belonging.uses`: one of those who must be there has left."""
        return any(map(self.has_left, users_of(name)))


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
        self._cut = cut
        self._clock = clock
        self._index = PrefixIndex(can_cut=can_cut)
        self._disk_tier = DiskTier(disk_budget, worth=self._worth, give_up=self.remove)
        self._last_uses: dict[str, float] = {}
        self._protected: frozenset[Segment] = frozenset()
        self._ram_bytes = 0
        self._forgotten_early: list[Forgetting] = []

    # Reading

    def match(self, token_ids: Sequence[int], limit: int, *, is_canonical: bool = False) -> Match:
        """The longest stored beginning of `token_ids[:limit]`; `is_canonical`: of that kind."""
        return self._index.match(token_ids, limit, is_canonical=is_canonical)

    def blob(self, segment: Segment) -> Blob | None:
        """The KV of a segment, checked. None: it is gone or damaged, and has been removed with
        all that stands on it. What came from the disk is valid until the next but one call."""
        if segment.blob is not None:
            if checksum_of(segment.blob) == segment.checksum:
                return segment.blob
            logger.error("KV in memory is damaged; it is computed again")
        elif segment.is_on_disk:
            blob = self._disk_tier.read(segment)
            if blob is not None:
                return blob
            logger.warning("KV on the disk is damaged or gone; it is computed again")
        self.remove(segment)
        return None

    def use(self, match: Match, belonging: Belonging) -> None:
        """Note that a conversation goes through these segments now."""
        now = self._clock()
        owner = belonging.owner
        for segment, end in match.steps():
            segment.last_used = now
            # Nothing of a temporary chat reaches the disk, its name neither.
            if owner and (belonging.is_durable or not segment.kind.is_durable):
                for name, num_used in belonging.uses(segment.start, end).items():
                    self._last_uses[_reader(name)] = now
                    segment.num_used[name] = max(segment.num_used.get(name, 0), num_used)
                self._disk_tier.note_change(segment)

    def protect(self, segments: Iterable[Segment]) -> None:
        """Keep these until the next call: somebody is about to need them."""
        self._protected = frozenset(segments)

    def prefetch(self, segments: Iterable[Segment]) -> None:
        """These are wanted next, in this order: read them ahead."""
        self._disk_tier.prefetch(segments)

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
        kind = Kind(is_canonical, belonging.is_durable and bool(belonging.owner))
        match = self._index.match_kind(token_ids, limit, kind)
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
        segment = self._index.add(token_ids[:end], start, kind)
        segment.checksum = checksum_of(blob)
        self._hold(segment, blob)
        self.use(Match((segment,), end), belonging)
        return end

    def remove(self, segment: Segment) -> None:
        """Give up a segment and all that stands on it, in every tier."""
        if segment in self._index:
            self._let_go(self._index.remove(segment))

    def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        """Remove what only `owner` uses, who may be a source, except what lies on these token
        `paths`.

        Of a segment that others go through in part, that part is left.
        """
        self._forget(Forgetting(lambda each: each == owner, owner, paths))

    def retain(self, owners: Iterable[str]) -> None:
        """Remove what belongs to others than these: they were deleted while nobody looked."""
        known = frozenset(owners)
        self._forget(Forgetting(lambda owner: owner not in known))

    def forget_all(self) -> None:
        """Remove everything, also what other models left on the disk."""
        self._forget(Forgetting(lambda owner: True))
        for segment in self._index:
            self.remove(segment)

    def distrust(self, token_ids: Sequence[int], belonging: Belonging) -> None:
        """A computation over these tokens went wrong: give up what no other conversation uses.
        Of a source nobody knows who else would read it, so it goes, too."""
        for match in self._index.matches(token_ids):
            for segment in match.segments:
                users = {each for name in segment.num_used for each in users_of(name)}
                if users <= {belonging.owner, belonging.source}:
                    self.remove(segment)
                    break

    # The disk

    def attach(self, disk: Disk, stored: Sequence[StoredSegment]) -> None:
        """Begin to use the disk: take in what it holds, and write what has come meanwhile."""
        self._disk_tier.attach(disk)
        self._disk_tier.remove([each.key for each in stored if not self._take_in(each)])
        durable = [segment for segment in self._index if segment.kind.is_durable]
        early, self._forgotten_early = self._forgotten_early, []
        for number, each in enumerate(early, start=1):
            self._disk_tier.forget_elsewhere(each.is_gone)
            if not any(later.is_gone(each.owner) for later in early[number:]):
                self._use_again(each, durable)
        self._remove_unused(durable)
        self.maintain()

    def note(self, notice: str) -> None:
        """Why there is no disk, for the user."""
        self._disk_tier.notice = notice

    def maintain(self) -> None:
        """Give the disk what is due, and take note of what it has done."""
        self._disk_tier.maintain(self._protected)

    def close(self, seconds: float) -> None:
        """Finish writing, for at most so long. Harmless twice."""
        self._disk_tier.close(seconds)

    # What it takes

    @property
    def is_writing(self) -> bool:
        """The disk has something to do, or to tell."""
        return self._disk_tier.is_writing

    def usage(self) -> KVUsage:
        tier = self._disk_tier
        return KVUsage(
            num_segments=len(self._index),
            ram_bytes=self._ram_bytes,
            ram_budget=self._ram_budget,
            disk_bytes=tier.num_bytes,
            disk_budget=tier.budget if tier.is_attached else 0,
            bytes_written=tier.num_bytes_written,
            notice=tier.notice,
        )

    def limit_ram(self, num_bytes: int) -> None:
        """Hold at most so many bytes in memory from now on."""
        self._ram_budget = num_bytes
        # A budget is hard: what somebody is about to need is read again.
        self.protect(())
        self._make_ram_room(0)

    def limit_disk(self, num_bytes: int) -> None:
        """Hold at most so many bytes on the disk from now on."""
        self._disk_tier.budget = num_bytes
        self.protect(())
        self.maintain()

    def check(self) -> None:
        """The books agree with what is held."""
        self._index.check()
        segments = set(self._index)
        self._disk_tier.check(segments)
        assert self._ram_bytes == sum(s.num_bytes for s in segments if s.blob is not None)
        assert self._ram_bytes <= self._ram_budget
        for segment in segments:
            assert segment.blob is not None or segment.is_on_disk
            assert all(0 < count <= segment.num_tokens for count in segment.num_used.values())
            if segment.parent is not None:
                below = [set(users_of(name)) for name in segment.parent.num_used]
                for name in segment.num_used:
                    assert any(users <= set(users_of(name)) for users in below)

    def _worth(self, segment: Segment) -> float:
        names = segment.num_used
        # Every conversation that went through it has gone another way since.
        is_old_branch = bool(names) and all(
            self._last_uses.get(_reader(name), 0.0) > segment.last_used for name in names
        )
        return worth(segment.last_used, is_old_branch=is_old_branch, is_shared=len(names) > 1)

    def _hold(self, segment: Segment, blob: Blob) -> None:
        segment.blob = blob
        segment.num_bytes = blob.nbytes
        self._ram_bytes += blob.nbytes

    def _drop_blob(self, segment: Segment) -> None:
        if segment.blob is not None:
            self._ram_bytes -= segment.num_bytes
            segment.blob = None

    def _let_go(self, segments: Iterable[Segment]) -> None:
        """Of segments that are out of the index: their blobs and files."""
        for segment in segments:
            self._drop_blob(segment)
            self._disk_tier.let_go(segment)

    def _make_ram_room(self, num_bytes: int, keep: Sequence[Segment] = ()) -> bool:
        if num_bytes > self._ram_budget:
            return False
        while self._ram_bytes + num_bytes > self._ram_budget:
            evictable = [
                each
                for each in self._index
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

    def _take_in(self, stored: StoredSegment) -> bool:
        """Link a segment of the disk. False: what is held already makes it useless."""
        parent = self._disk_tier.find(stored.parent_key) if stored.parent_key else None
        if stored.parent_key and parent is None:
            return False
        kind = Kind(stored.is_canonical, is_durable=True)
        num_used = {
            owner: count
            for owner, count in stored.num_used.items()
            if not any(early.is_gone(owner) for early in self._forgotten_early)
        }
        prefix = parent.prefix()[: stored.start] if parent is not None else []
        prefix += stored.token_ids
        match = self._index.match_kind(prefix, len(prefix), kind)
        twin = match.segments[-1] if match.length == len(prefix) else None
        if twin is not None and (twin.start, twin.token_ids) == (stored.start, stored.token_ids):
            # Read again before the disk was there.
            for owner, count in num_used.items():
                twin.num_used[owner] = max(count, twin.num_used.get(owner, 0))
            self._drop_blob(twin)
            twin.num_bytes, twin.checksum = stored.num_bytes, stored.checksum
            self._disk_tier.adopt(twin, stored.key)
            return True
        if match.length > stored.start and self._can_cut:
            return False
        segment = Segment(
            parent,
            stored.start,
            stored.token_ids,
            num_used=num_used,
            kind=kind,
            last_used=stored.last_used,
            num_bytes=stored.num_bytes,
            checksum=stored.checksum,
        )
        self._index.link(segment)
        self._disk_tier.adopt(segment, stored.key)
        for reader in map(_reader, segment.num_used):
            self._last_uses[reader] = max(self._last_uses.get(reader, 0.0), segment.last_used)
        return True

    def _forget(self, forgetting: Forgetting) -> None:
        if self._disk_tier.is_attached:
            self._disk_tier.forget_elsewhere(forgetting.is_gone)
        else:
            # What is asked before the disk is there holds for what it brings.
            self._forgotten_early.append(forgetting)
        touched: list[Segment] = []
        for segment in self._index:
            gone = [owner for owner in segment.num_used if forgetting.is_gone(owner)]
            for owner in gone:
                del segment.num_used[owner]
            if gone:
                touched.append(segment)
        for owner in [owner for owner in self._last_uses if forgetting.is_gone(owner)]:
            del self._last_uses[owner]
        self._use_again(forgetting, touched)
        self._remove_unused(touched)

    def _use_again(self, forgetting: Forgetting, touched: Iterable[Segment]) -> None:
        """What of these lies on the paths that are kept belongs to their owner as before."""
        among = frozenset(touched)
        for token_ids in forgetting.paths:
            for match in self._index.matches(token_ids):
                held = [step for step in match.steps() if step[0] in among]
                for segment, end in held:
                    belonging = Belonging(owner=forgetting.owner, is_durable=True)
                    self.use(Match((segment,), end), belonging)

    def _remove_unused(self, touched: Iterable[Segment]) -> None:
        """Of segments that lost an owner: give up what is nobody's, and the ends that are."""
        for segment in touched:
            if segment not in self._index:
                continue
            self._disk_tier.note_change(segment)
            num_used = max(segment.num_used.values(), default=0)
            if num_used == 0:
                self.remove(segment)
            elif num_used < segment.num_tokens:
                self._shorten(segment, num_used)

    def _shorten(self, segment: Segment, num_tokens: int) -> None:
        whole = self.blob(segment)
        if whole is None:
            return
        blob = self._cut(whole, segment.start, segment.end, num_tokens)
        # The cells for it were another's, and room for that one may have been made here.
        if segment not in self._index:
            return
        beyond = None if blob is None else self._index.shorten(segment, num_tokens)
        if blob is None or beyond is None:
            self.remove(segment)
            return
        self._let_go(beyond)
        for owner, count in segment.num_used.items():
            # Whoever made room may have come to go through more of it.
            segment.num_used[owner] = min(count, num_tokens)
        # The file holds the words that must go, and its name stands for them.
        self._disk_tier.lose(segment)
        self._drop_blob(segment)
        segment.checksum = checksum_of(blob)
        if not self._make_ram_room(blob.nbytes, keep=segment.path()):
            self.remove(segment)
            return
        self._hold(segment, blob)
        self._disk_tier.note_change(segment)
        for child in segment.children.values():
            self._disk_tier.note_change(child)


def _reader(name: str) -> str:
    """Who goes through it, by a name of `Belonging.uses`."""
    return users_of(name)[-1]
