"""Who sits on which sequence of the KV memory, and what a newcomer need not read again.

# a seat holds token_ids [0, length); its KV is in the cells of its sequence
# running   its request reads or writes; the seat grows
# idle      its request has ended; the seat waits for a prompt that continues it
# empty     nothing held

A prompt that continues an idle seat takes it over. One that shares only a beginning forks it, so
that the other conversation keeps its end. What is not in the cells comes back from the store, and
what leaves the cells goes there first.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import KVMemory
from engine.batch import GRID_TOKENS
from engine.kv.cell_pool import CellPool
from engine.kv.policy import worth
from engine.kv.prefix_tree import Match
from engine.kv.segment import NOBODY, Blob, Segment
from engine.kv.store import KVStore
from engine.request import Request

# Below this a fork, or a way to the store, saves less than the bookkeeping costs.
MIN_FORK_TOKENS = 8
MIN_STORE_TOKENS = 16
# Idle conversations beyond this leave the cells while somebody writes: every decode step looks
# over all cells up to the highest one in use.
MAX_IDLE_CELLS = 4096
# Longer ones stay where they are when the others have left: moving them costs more than it gains.
MAX_MOVED_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class Return:
    """A segment on its way back; afterwards the seat holds `num_tokens`."""

    segment: Segment
    num_tokens: int


class Seat:
    """One sequence. Only `Seats` changes it."""

    def __init__(self, sequence_id: int, num_cells: int) -> None:
        self.sequence_id = sequence_id
        self.request: Request | None = None
        self.length = 0
        self.num_canonical = 0
        """So many of its tokens were computed alone and on the grid."""
        self.num_stored = 0
        """So many were in the store when it was last asked."""
        self.last_used = 0.0
        self.belonging = NOBODY
        self.is_forgotten = False
        self.returning: deque[Return] = deque()
        self._cells: NDArray[np.int32] = np.empty(num_cells, np.int32)
        self._token_ids: list[int] = []

    @property
    def is_idle(self) -> bool:
        return self.request is None and self.length > 0

    @property
    def is_empty(self) -> bool:
        return self.request is None and self.length == 0

    @property
    def token_ids(self) -> list[int]:
        """At least the `length` tokens held; while it runs, the request's own list."""
        return self.request.token_ids if self.request is not None else self._token_ids

    @property
    def cells(self) -> NDArray[np.int32]:
        return self._cells[: self.length]

    def append(self, cells: NDArray[np.int32]) -> None:
        self._cells[self.length : self.length + len(cells)] = cells
        self.length += len(cells)

    def shrink(self, num_tokens: int) -> None:
        self.length = num_tokens
        self.num_canonical = min(self.num_canonical, num_tokens)
        self.num_stored = min(self.num_stored, num_tokens)

    def keep(self, token_ids: list[int]) -> None:
        self._token_ids = token_ids


class Seats:
    """The only door to KV, in the cells and in the store. Owned by the engine thread."""

    def __init__(self, memory: KVMemory, *, ram_budget: int = 0, disk_budget: int = 0) -> None:
        self._memory = memory
        self._pool = CellPool(memory.num_cells)
        self._seats = [Seat(i, memory.num_cells) for i in range(memory.num_sequences)]
        self._alone: Seat | None = None
        self._has_gaps = False
        self.store = KVStore(
            can_cut=memory.can_cut,
            max_export_tokens=memory.max_export_tokens,
            ram_budget=ram_budget,
            disk_budget=disk_budget,
            cut=self._cut_blob,
        )

    @property
    def num_free_cells(self) -> int:
        return self._pool.num_free

    @property
    def can_cut(self) -> bool:
        return self._memory.can_cut

    @property
    def num_idle(self) -> int:
        return sum(seat.is_idle for seat in self._seats)

    # A request comes

    def admit(self, request: Request, headroom: int) -> bool:
        """Seat a waiting request on the longest beginning that is held anywhere.

        Sets its `sequence_id` and `num_computed_tokens`; what has to come back from the store
        does so in `bring_back`. At least its last token is left to compute, because a full hit
        would bring no logits. False: no seat or no room for the rest and `headroom` tokens;
        nothing changed. A reproducible request must be alone.
        """
        seat: Seat | None
        if request.options.is_reproducible:
            seat, stored = self._seat_alone(request), self._stored(request)
        else:
            stored = self._stored(request)
            seat, stored = self._seat_beside_others(request, headroom, stored)
            if seat is None and stored.segments:
                # The way back takes more cells for a moment than reading does.
                seat, stored = self._seat_beside_others(request, headroom, Match())
            self._alone = None
        if seat is None:
            return False
        seat.request = request
        seat.is_forgotten = False
        seat.belonging = request.options.belonging
        self._touch(seat)
        request.sequence_id = seat.sequence_id
        request.num_computed_tokens = seat.length
        self._expect(seat, stored)
        return True

    def is_returning(self, request: Request) -> bool:
        """Part of its prompt is still in the store."""
        return bool(self._seat_of(request).returning)

    def bring_back(self, request: Request, seconds: float | None) -> None:
        """Put stored KV into the cells of a running request, for about so long (None: all).

        What cannot be had is computed.
        """
        seat = self._seat_of(request)
        began = perf_counter()
        while seat.returning:
            if not self._bring_one(seat, request, seat.returning.popleft()):
                seat.returning.clear()
            if seconds is not None and perf_counter() - began > seconds:
                break
        request.restore_ms += (perf_counter() - began) * 1e3
        if not seat.returning:
            self._protect_returning()

    # A request runs

    def extend(self, request: Request, num_tokens: int) -> bool:
        """Cells for the next tokens of a running request. False: no room, nothing is lost."""
        seat = self._seat_of(request)
        if not self._make_room(num_tokens, keep=seat):
            return False
        self._take_cells(seat, num_tokens)
        return True

    def evict_idle(self) -> bool:
        """Give back everything that no running request needs. False: there was nothing."""
        return any([self._evict_one(keep=None) for _ in range(self.num_idle)])

    def resync(self, request: Request, num_tokens: int) -> None:
        """After a step that ended early: hold exactly the first `num_tokens`, in both books."""
        seat = self._seat_of(request)
        if self._memory.length(seat.sequence_id) > num_tokens and not self._memory.truncate(
            seat.sequence_id, num_tokens
        ):
            self._memory.free(seat.sequence_id)
            num_tokens = 0
        self._shrink(seat, num_tokens)
        request.num_computed_tokens = num_tokens

    def checkpoint(self, request: Request) -> None:
        """Store a state that cannot be cut back later, where the next prompt may want it: before
        the last token of this one, for another answer."""
        seat = self._seat_of(request)
        place = request.num_prompt_tokens - 1
        if request.options.is_reproducible:
            place -= place % GRID_TOKENS
            seat.num_canonical = min(seat.length, place)
        if seat.length == place >= MIN_STORE_TOKENS:
            self._save(seat, place)

    def release(self, request: Request) -> None:
        """The request leaves; what it computed stays for whoever continues it."""
        seat = self._seat_of(request)
        options = request.options
        keeps = not (seat.is_forgotten or options.is_background)
        num_kept = request.num_computed_tokens if keeps else 0
        if options.is_reproducible and keeps:
            # What was generated token by token has other bits than the same text read in pieces.
            num_kept = min(num_kept, request.num_prompt_tokens) // GRID_TOKENS * GRID_TOKENS
        seat.returning.clear()
        if num_kept == 0 or not self._cut_back(seat, num_kept):
            self._free(seat)
        if options.is_reproducible:
            seat.num_canonical = seat.length
        seat.keep(request.token_ids[: seat.length])
        seat.request = None
        request.sequence_id = None
        self._touch(seat)

    # Between the steps

    def maintain(self, is_writing: bool) -> bool:
        """A little of what is due: KV that has come to rest goes to the store, and idle seats
        leave the cells while somebody writes. True: there is more to do."""
        self.store.maintain()
        if is_writing and self._relieve():
            return True
        seats = sorted(self._seats, key=lambda seat: (seat.request is not None, seat.last_used))
        return any(self._save_more(seat) for seat in seats)

    def flush(self) -> None:
        """Bring everything that may outlive the process into the store."""
        for seat in self._seats:
            if seat.is_idle and seat.belonging.is_durable:
                self._save(seat, seat.length)

    def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        """Remove the words of `owner` that nobody else goes through, but for these token paths."""
        for seat in self._seats:
            if seat.belonging.owner != owner or seat.is_empty:
                continue
            held = seat.token_ids[: seat.length]
            if any(list(path[: seat.length]) == held for path in paths):
                continue
            if seat.is_idle:
                self._free(seat)
            else:
                seat.is_forgotten = True
                seat.belonging = NOBODY
        self.store.forget(owner, paths)

    def forget_everything(self) -> None:
        """The memory is damaged: overwrite all of it. Running requests must be released first."""
        for seat in self._seats:
            assert seat.request is None
            self._shrink(seat, 0)
        self._alone = None
        self._memory.clear()

    def check(self) -> None:
        """Our books agree with the memory's, and no cell is lost or counted twice."""
        self._pool.check()
        held = np.concatenate([seat.cells for seat in self._seats])
        assert len(np.unique(held)) == self._pool.num_cells - self._pool.num_free
        for seat in self._seats:
            assert len(np.unique(seat.cells)) == seat.length
            assert self._memory.length(seat.sequence_id) == seat.length
            assert len(seat.token_ids) >= seat.length
            assert seat.num_canonical <= seat.length
            assert seat.request is not None or not seat.returning
        self.store.check()

    # Seating

    def _seat_beside_others(
        self, request: Request, headroom: int, stored: Match
    ) -> tuple[Seat | None, Match]:
        source, num_held = self._longest_prefix(request)
        if stored.length - num_held < MIN_STORE_TOKENS:
            stored = Match()
        elif not self._memory.can_cut:
            # A state from the store needs an empty seat.
            source, num_held = None, 0
        # What comes back needs its segment's cells for a moment, also those it will not keep.
        headroom += max((each.num_tokens for each in stored.segments), default=0)
        seat = None
        if source is not None and source.is_idle and num_held == source.length:
            seat = self._continue(source, request, headroom)
        if seat is None and source is not None and num_held >= MIN_FORK_TOKENS:
            seat = self._fork(source, num_held, request, headroom) or self._cut(
                source, num_held, request, headroom
            )
        return seat or self._start_afresh(request, headroom), stored

    def _continue(self, source: Seat, request: Request, headroom: int) -> Seat | None:
        if request.options.is_background:
            return None
        needed = request.num_tokens - source.length + headroom
        return source if needed <= self._num_obtainable(source.cells) else None

    def _fork(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        needed = request.num_tokens - num_held + headroom
        if not self._memory.can_cut or needed > self._num_obtainable(source.cells):
            return None
        seat = self._empty_seat(keep=source)
        if seat is not None:
            self._memory.fork(source.sequence_id, seat.sequence_id, num_held)
            self._pool.share(source.cells[:num_held])
            seat.append(source.cells[:num_held])
            seat.num_canonical = min(source.num_canonical, num_held)
            seat.num_stored = min(source.num_stored, num_held)
        return seat

    def _cut(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        """The last resort before reading all of it again: the other's end makes room."""
        needed = request.num_tokens - num_held + headroom
        if not source.is_idle or needed > self._num_obtainable(source.cells[:num_held]):
            return None
        self._save(source, source.length)
        return source if self._cut_back(source, num_held) else None

    def _start_afresh(self, request: Request, headroom: int) -> Seat | None:
        if request.num_tokens + headroom > self._num_obtainable(_NO_CELLS):
            return None
        return self._empty_seat(keep=None)

    def _seat_alone(self, request: Request) -> Seat:
        """Cells from the first on, in the order of the tokens: where KV lies changes its sums."""
        assert all(seat.request is None for seat in self._seats)
        seat = self._alone
        if seat is not None:
            limit = min(seat.num_canonical, request.num_tokens - 1)
            num_held = common_prefix(seat.token_ids, request.token_ids, limit)
            num_held -= num_held % GRID_TOKENS
            stored = self._stored(request)
            if num_held >= stored.length and self._cut_back(seat, num_held):
                return seat
        for other in self._seats:
            if other.is_idle:
                self._evict(other)
        self._alone = self._seats[0]
        return self._seats[0]

    def _stored(self, request: Request) -> Match:
        is_reproducible = request.options.is_reproducible
        limit = request.num_tokens - 1
        stored = self.store.match(request.token_ids, limit, is_canonical=is_reproducible)
        if not is_reproducible:
            return stored
        length = stored.length - stored.length % GRID_TOKENS
        if not self._memory.can_cut and length < stored.length:
            return Match()
        return Match(tuple(each for each in stored.segments if each.start < length), length)

    def _longest_prefix(self, request: Request) -> tuple[Seat | None, int]:
        best: Seat | None = None
        best_length = 0
        token_ids = request.token_ids
        for seat in self._seats:
            limit = min(seat.length, len(token_ids) - 1)
            length = common_prefix(seat.token_ids, token_ids, limit)
            can_continue = seat.is_idle and seat.length == length
            if not (can_continue or self._memory.can_cut):
                continue
            # Among equals, one that can simply be continued.
            if length > best_length or (length == best_length > 0 and can_continue):
                best, best_length = seat, length
        return best, best_length

    # Coming back

    def _expect(self, seat: Seat, stored: Match) -> None:
        seat.returning.clear()
        if stored.length <= seat.length:
            return
        self.store.use(stored, seat.belonging)
        for segment, end in stored.steps():
            if end > seat.length:
                seat.returning.append(Return(segment, end))
        self._protect_returning()
        self.store.prefetch([each.segment for each in seat.returning])

    def _bring_one(self, seat: Seat, request: Request, coming: Return) -> bool:
        segment = coming.segment
        if not self._make_room(segment.num_tokens, keep=seat):
            return False
        is_from_disk = segment.blob is None
        blob = self.store.blob(segment)
        if blob is None or not self._memory.restore(
            seat.sequence_id, blob, segment.start, segment.end, coming.num_tokens
        ):
            return False
        num_tokens = coming.num_tokens - seat.length
        self._take_cells(seat, num_tokens)
        if request.options.is_reproducible or segment.is_canonical:
            seat.num_canonical = max(seat.num_canonical, seat.length)
        seat.num_stored = seat.length
        request.num_computed_tokens = seat.length
        if request.num_preemptions == 0:
            # What it had computed itself before it was preempted is no hit.
            request.num_restored_tokens += num_tokens
            request.is_from_disk |= is_from_disk
        return True

    def _protect_returning(self) -> None:
        self.store.protect(each.segment for seat in self._seats for each in seat.returning)

    # Leaving the cells

    def _save(self, seat: Seat, limit: int) -> bool:
        """Store the first `limit` tokens of a seat. False: there is no room for them."""
        if limit < MIN_STORE_TOKENS:
            return False
        while self._save_one(seat, limit):
            pass
        return seat.num_stored >= limit

    def _save_one(self, seat: Seat, limit: int) -> bool:
        """Store the next segment of a seat. True: there may be more."""

        def export(start: int, end: int) -> Blob | None:
            return self._memory.export(seat.sequence_id, start, end)

        num_stored = self.store.put(
            seat.token_ids[:limit],
            limit,
            export,
            seat.belonging,
            is_canonical=limit <= seat.num_canonical,
        )
        has_grown = num_stored > seat.num_stored
        seat.num_stored = num_stored
        return has_grown and num_stored < limit

    def _save_more(self, seat: Seat) -> bool:
        """One segment of a seat that has come to rest. True: something was stored."""
        limit = seat.length
        if self._memory.can_cut:
            limit -= limit % self.store.segment_tokens
        elif seat.request is not None:
            return False
        before = seat.num_stored
        if limit < MIN_STORE_TOKENS or before >= limit or seat.is_forgotten or seat.returning:
            return False
        if seat.request is not None and seat.request.options.is_background:
            return False
        self._save_one(seat, limit)
        if seat.num_stored <= before:
            # No room: asked again when the seat has grown.
            seat.num_stored = limit
            return False
        return True

    def _relieve(self) -> bool:
        """Move what nobody needs now out of the cells. True: something was done."""
        running = [seat for seat in self._seats if seat.request is not None]
        idle = [seat for seat in self._seats if seat.is_idle]
        in_use = np.unique(np.concatenate([_NO_CELLS, *(seat.cells for seat in running)]))
        num_idle_cells = self._pool.num_cells - self._pool.num_free - len(in_use)
        if idle and num_idle_cells > MAX_IDLE_CELLS:
            worst = min(idle, key=self._worth)
            if worst.num_stored < worst.length and self._save_one(worst, worst.length):
                return True
            self._free(worst)
            self._has_gaps = True
            return True
        if self._has_gaps:
            self._has_gaps = False
            for seat in running:
                self._move_down(seat)
        return False

    def _move_down(self, seat: Seat) -> None:
        """Into the lowest cells: the highest one in use is what every step pays for."""
        length = seat.length
        if not self._memory.can_cut or not 0 < length <= MAX_MOVED_TOKENS or seat.returning:
            return
        step = self.store.segment_tokens
        if length > self._pool.num_free or seat is self._alone:
            return
        starts = range(0, length, step)
        blobs = [
            self._memory.export(seat.sequence_id, start, min(start + step, length))
            for start in starts
        ]
        if any(blob is None for blob in blobs):
            return
        self._memory.free(seat.sequence_id)
        for start, blob in zip(starts, blobs, strict=True):
            end = min(start + step, length)
            if blob is None or not self._memory.restore(seat.sequence_id, blob, start, end, end):
                break
        held = self._memory.length(seat.sequence_id)
        request = seat.request
        self._shrink(seat, held)
        if request is not None:
            request.num_computed_tokens = held

    def _evict_one(self, keep: Seat | None) -> bool:
        idle = [seat for seat in self._seats if seat.is_idle and seat is not keep]
        if not idle:
            return False
        self._evict(min(idle, key=self._worth))
        return True

    def _evict(self, seat: Seat) -> None:
        self._save(seat, seat.length)
        self._free(seat)

    def _worth(self, seat: Seat) -> float:
        owner = seat.belonging.owner
        is_old_branch = bool(owner) and any(
            other.belonging.owner == owner and other.last_used > seat.last_used
            for other in self._seats
            if not other.is_empty
        )
        return worth(seat.last_used, is_old_branch=is_old_branch)

    # Books

    def _seat_of(self, request: Request) -> Seat:
        return self._seats[request.seat_id]

    def _touch(self, seat: Seat) -> None:
        latest = max(each.last_used for each in self._seats)
        # Two in one tick of the clock still have an order.
        seat.last_used = max(time.time(), np.nextafter(latest, np.inf))

    def _make_room(self, num_tokens: int, keep: Seat) -> bool:
        while self._pool.num_free < num_tokens:
            if not self._evict_one(keep):
                return False
        return True

    def _take_cells(self, seat: Seat, num_tokens: int) -> None:
        cells = self._pool.allocate(num_tokens)
        assert cells is not None
        seat.append(cells)

    def _num_obtainable(self, keep: NDArray[np.int32]) -> int:
        """Cells that are free or would be, if every idle seat went except the cells in `keep`."""
        is_free = np.ones(self._pool.num_cells, np.bool_)
        is_free[keep] = False
        for seat in self._seats:
            if seat.request is not None:
                is_free[seat.cells] = False
        return int(np.count_nonzero(is_free))

    def _empty_seat(self, keep: Seat | None) -> Seat | None:
        while True:
            seat = next((seat for seat in self._seats if seat.is_empty), None)
            if seat is not None or not self._evict_one(keep):
                return seat

    def _cut_back(self, seat: Seat, num_tokens: int) -> bool:
        """Keep the first tokens of a seat. False: this model's state cannot be cut."""
        if self._memory.length(seat.sequence_id) > num_tokens and not self._memory.truncate(
            seat.sequence_id, num_tokens
        ):
            return False
        self._shrink(seat, num_tokens)
        return True

    def _free(self, seat: Seat) -> None:
        self._memory.free(seat.sequence_id)
        self._shrink(seat, 0)

    def _shrink(self, seat: Seat, num_tokens: int) -> None:
        if seat.length > num_tokens:
            self._pool.release(seat.cells[num_tokens:].copy())
            seat.shrink(num_tokens)

    def _cut_blob(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        """A shorter blob, made in cells that are free for a moment."""
        while self._pool.num_free < end - start or not any(seat.is_empty for seat in self._seats):
            if not self._evict_one(keep=None):
                return None
        return self._memory.cut(blob, start, end, num_tokens)


_STRETCH = 256
_NO_CELLS: NDArray[np.int32] = np.empty(0, np.int32)


def common_prefix(held: list[int], wanted: list[int], limit: int) -> int:
    """How many of the first `limit` tokens are equal."""
    # Asked of every seat while a request waits, so most of the time it must end early.
    for start in range(0, limit, _STRETCH):
        end = min(start + _STRETCH, limit)
        if held[start:end] != wanted[start:end]:
            return next(i for i in range(start, end) if held[i] != wanted[i])
    return limit
