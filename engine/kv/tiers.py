"""The way of KV between the cells and the store, in both directions.

save, evict      what has come to rest, or must make room
bring back       what a newcomer's prompt begins with
relieve          idle conversations, while somebody writes
"""

from time import perf_counter

from engine.kv.cells import Cells
from engine.kv.policy import worth
from engine.kv.prefix_tree import Match
from engine.kv.seat import Return, Seat
from engine.kv.segment import Blob
from engine.kv.store import KVStore
from engine.request import Request

# Below this, a way to the store saves less than the bookkeeping costs.
MIN_STORE_TOKENS = 16
# Idle conversations beyond this leave the cells while somebody is answered: every step looks over
# all cells up to the highest one in use. SmolLM2 on 2 threads decoded a token in 9.1 ms with none,
# 11.2 with 1,024, 14.3 with 4,096 and 18.0 with 8,192 of them; 1,024 come back in about 10 ms.
MAX_IDLE_CELLS = 1024
# Longer ones stay where they are when the others have left: moving them costs more than it gains.
MAX_MOVED_TOKENS = 2048


class Tiers:
    """Owned by the engine thread."""

    def __init__(self, cells: Cells, store: KVStore) -> None:
        self._cells = cells
        self._store = store
        self._has_gaps = False

    # Out of the cells

    def save(self, seat: Seat, limit: int) -> None:
        """Store the first `limit` tokens of a seat, as far as there is room for them."""
        if limit >= MIN_STORE_TOKENS:
            before = -1
            while before < self._save_one(seat, limit) < limit:
                before = seat.num_stored

    def save_more(self, seat: Seat) -> bool:
        """One segment of what will not change any more. True: something was stored."""
        limit = seat.length
        if self._cells.can_cut:
            limit -= limit % self._store.segment_tokens
        elif seat.request is not None:
            return False
        before = seat.num_stored
        if limit < MIN_STORE_TOKENS or before >= limit or seat.returning:
            return False
        if seat.request is not None and seat.request.leaves_nothing:
            return False
        if self._save_one(seat, limit) <= before:
            # No room: asked again when the seat has grown.
            seat.num_stored = limit
            return False
        return True

    def make_room(self, num_cells: int, keep: Seat | None) -> bool:
        """Evict idle seats until so many cells are free. False: there are not so many."""
        while self._cells.num_free < num_cells:
            if not self.evict_one(keep):
                return False
        return True

    def empty_seat(self, keep: Seat | None) -> Seat | None:
        """A seat without tokens, at the cost of the idle one that is worth least."""
        while True:
            seat = next(self._cells.empty(), None)
            if seat is not None or not self.evict_one(keep):
                return seat

    def evict_one(self, keep: Seat | None) -> bool:
        idle = [seat for seat in self._cells.idle() if seat is not keep]
        if not idle:
            return False
        self.evict(min(idle, key=self._worth))
        return True

    def evict(self, seat: Seat) -> None:
        self.save(seat, seat.length)
        self._cells.free(seat)

    # Back into the cells

    def expect(self, seat: Seat, stored: Match) -> None:
        """What a seat with a new request lacks and the store has comes with `bring_back`."""
        seat.returning.clear()
        if stored.length > seat.length:
            self._store.use(stored, seat.belonging)
            for segment, end in stored.steps():
                if end > seat.length:
                    seat.returning.append(Return(segment, end))
            self._store.prefetch([coming.segment for coming in seat.returning])
        self.protect(Match())

    def bring_back(self, seat: Seat, request: Request, seconds: float | None) -> None:
        """Restore what the seat waits for, for about so long (None: all of it)."""
        began = perf_counter()
        while seat.returning:
            if not self._bring_one(seat, request, seat.returning.popleft()):
                # What cannot be had is computed.
                seat.returning.clear()
            if seconds is not None and perf_counter() - began > seconds:
                break
        request.restore_ms += (perf_counter() - began) * 1e3
        self.protect(Match())

    def protect(self, stored: Match) -> None:
        """Keep in the store what comes back now, and this for whom it will come back next."""
        coming = (each.segment for seat in self._cells.seats for each in seat.returning)
        self._store.protect([*coming, *stored.segments])

    # Out of the way

    def relieve(self) -> bool:
        """One step of moving what nobody needs now out of the cells. True: something was done."""
        running, idle = self._cells.running(), self._cells.idle()
        if idle and self._cells.num_used - self._cells.num_of(running) > MAX_IDLE_CELLS:
            worst = min(idle, key=self._worth)
            before = worst.num_stored
            if not before < self._save_one(worst, worst.length) < worst.length:
                self.evict(worst)
                self._has_gaps = True
            return True
        if self._has_gaps:
            self._has_gaps = False
            for seat in running:
                self._move_down(seat)
        return False

    def cut_blob(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        """A shorter blob, made in cells that are free for a moment."""
        if self.empty_seat(keep=None) is None or not self.make_room(end - start, keep=None):
            return None
        return self._cells.cut_blob(blob, start, end, num_tokens)

    def _save_one(self, seat: Seat, limit: int) -> int:
        """Store the next segment of a seat. Gives how many of its tokens are stored now: the
        store may have had to let go of some that were."""
        seat.num_stored = self._store.put(
            seat.token_ids,
            limit,
            lambda start, end: self._cells.export(seat, start, end),
            seat.belonging,
            is_canonical=limit <= seat.num_canonical,
        )
        return seat.num_stored

    def _bring_one(self, seat: Seat, request: Request, coming: Return) -> bool:
        segment, num_held = coming.segment, seat.length
        if segment.end < coming.num_tokens:
            # Another conversation was deleted, and this was shortened with it.
            return False
        if not self.make_room(segment.num_tokens, keep=seat):
            return False
        is_from_disk = segment.blob is None
        blob = self._store.blob(segment)
        if blob is None or not self._cells.restore(
            seat, blob, segment.start, segment.end, coming.num_tokens
        ):
            return False
        if segment.kind.is_canonical and seat.num_canonical == num_held:
            seat.num_canonical = seat.length
        seat.num_stored = seat.length
        request.num_computed_tokens = seat.length
        if request.num_preemptions == 0:
            # What it had computed itself before it was preempted is no hit.
            num_prompt = request.num_prompt_tokens
            request.num_restored_tokens += max(0, min(seat.length, num_prompt) - num_held)
            request.is_from_disk |= is_from_disk
        return True

    def _move_down(self, seat: Seat) -> None:
        """Into the lowest cells: the highest one in use is what every step pays for."""
        length = seat.length
        if not self._cells.can_cut or not 0 < length <= MAX_MOVED_TOKENS or seat.returning:
            return
        if length > self._cells.num_free:
            return
        borders = [*range(0, length, self._store.segment_tokens), length]
        pieces = [
            (start, end, self._cells.export(seat, start, end))
            for start, end in zip(borders, borders[1:], strict=False)
        ]
        if all(blob is not None for *_, blob in pieces):
            num_stored, num_canonical = seat.num_stored, seat.num_canonical
            self._cells.free(seat)
            for start, end, blob in pieces:
                if blob is None or not self._cells.restore(seat, blob, start, end, end):
                    break
            seat.num_stored = min(num_stored, seat.length)
            seat.num_canonical = min(num_canonical, seat.length)
            if seat.request is not None:
                seat.request.num_computed_tokens = seat.length

    def _worth(self, seat: Seat) -> float:
        owner = seat.belonging.owner
        is_old_branch = bool(owner) and any(
            other.belonging.owner == owner and other.last_used > seat.last_used
            for other in self._cells.seats
            if not other.is_empty
        )
        return worth(seat.last_used, is_old_branch=is_old_branch)
