"""The only door to KV: who sits where, and what a newcomer need not read again.

A prompt that continues an idle seat takes it over. One that shares only a beginning forks it, so
that the other conversation keeps its end. What is not in the cells comes back from the store, and
what leaves the cells goes there first.
"""

import time
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import KVMemory
from engine.kv.cells import Cells
from engine.kv.prefix_tree import Match
from engine.kv.seat import Seat
from engine.kv.store import KVStore
from engine.kv.tiers import MIN_STORE_TOKENS, Tiers
from engine.request import Request

# Below this a fork saves less than the bookkeeping costs.
MIN_FORK_TOKENS = 8


class Seats:
    """Owned by the engine thread. The scheduler and the engine ask here and nowhere below."""

    def __init__(self, memory: KVMemory, *, ram_budget: int = 0, disk_budget: int = 0) -> None:
        self._cells = Cells(memory)
        self.store = KVStore(
            can_cut=memory.can_cut,
            max_export_tokens=memory.max_export_tokens,
            ram_budget=ram_budget,
            disk_budget=disk_budget,
            cut=lambda blob, start, end, count: self._tiers.cut_blob(blob, start, end, count),
        )
        self._tiers = Tiers(self._cells, self.store)
        # The one seat whose tokens lie in the first cells in their order, with nobody else there.
        self._alone: Seat | None = None

    @property
    def can_cut(self) -> bool:
        return self._cells.can_cut

    @property
    def num_free_cells(self) -> int:
        return self._cells.num_free

    @property
    def num_idle(self) -> int:
        return len(self._cells.idle())

    def admit(self, request: Request, headroom: int) -> bool:
        """Seat a waiting request on the longest beginning that is held anywhere.

        Sets its `sequence_id` and `num_computed_tokens`; what has to come back from the store
        does so in `bring_back`. At least its last token is left to compute, because a full hit
        would bring no logits. False: no seat or no room for the rest and `headroom` tokens;
        nothing changed. A reproducible request must be alone.
        """
        stored = self._stored(request)
        # Who makes way for it goes to the store, and must not push it out there.
        self._tiers.protect(stored)
        seat: Seat | None
        if request.options.is_reproducible:
            seat, stored = self._seat_alone(request, stored)
        else:
            seat, stored = self._seat_beside_others(request, headroom, stored)
            if seat is not None:
                self._alone = None
        if seat is None:
            self._tiers.protect(Match())
            return False
        seat.request = request
        seat.belonging = request.belonging
        self._touch(seat)
        request.sequence_id = seat.sequence_id
        request.num_computed_tokens = seat.length
        self._tiers.expect(seat, stored)
        return True

    def is_returning(self, request: Request) -> bool:
        """Part of its prompt is still in the store."""
        return bool(self._seat_of(request).returning)

    def bring_back(self, request: Request, seconds: float | None) -> None:
        """Put stored KV into the cells of a running request, for about so long (None: all)."""
        seat = self._seat_of(request)
        self._tiers.bring_back(seat, request, seconds)
        if not seat.returning and (usable := request.reusable(seat.length)) < seat.length:
            # Less came back than was promised, and it ends inside of what is computed whole.
            self.resync(request, usable)

    def extend(self, request: Request, num_tokens: int) -> bool:
        """Cells for the next tokens of a running request. False: no room, nothing is lost."""
        seat = self._seat_of(request)
        if not self._tiers.make_room(num_tokens, keep=seat):
            return False
        self._cells.take(seat, num_tokens)
        return True

    def evict_idle(self) -> bool:
        """Give back everything that no running request needs. False: there was nothing."""
        return any([self._tiers.evict_one(keep=None) for _ in range(self.num_idle)])

    def resync(self, request: Request, num_tokens: int) -> None:
        """After a step that ended early: hold exactly the first `num_tokens`, in both books."""
        seat = self._seat_of(request)
        if not self._cells.cut_back(seat, num_tokens):
            self._cells.free(seat)
        request.num_computed_tokens = seat.length

    def checkpoint(self, request: Request) -> None:
        """Store a state that cannot be cut back later, where the next prompt may want it."""
        if request.leaves_nothing:
            return
        seat = self._seat_of(request)
        places = [request.reusable(place) for place in request.checkpoints]
        if request.options.is_reproducible:
            seat.num_canonical = min(seat.length, places[-1])
        if seat.length in places:
            self._tiers.save(seat, seat.length)

    def release(self, request: Request) -> None:
        """The request leaves; what it computed stays for whoever continues it."""
        seat, options = self._seat_of(request), request.options
        num_kept = request.num_computed_tokens
        if options.is_reproducible:
            # What was generated token by token has other bits than the same text read in pieces.
            num_kept = request.reusable(min(num_kept, request.num_prompt_tokens))
        if request.leaves_nothing:
            num_kept = 0
        seat.returning.clear()
        if num_kept == 0 or not self._cells.cut_back(seat, num_kept):
            self._cells.free(seat)
        if options.is_reproducible:
            seat.num_canonical = seat.length
        seat.keep(request.token_ids[: seat.length])
        seat.request = None
        request.sequence_id = None
        self._touch(seat)

    def maintain(self, is_busy: bool) -> bool:
        """A little of what is due: KV that has come to rest goes to the store, and idle seats
        leave the cells while somebody is answered. True: there is more to do."""
        self.store.maintain()
        if is_busy and self._alone is None and self._tiers.relieve():
            return True
        seats = sorted(
            self._cells.seats, key=lambda seat: (seat.request is not None, seat.last_used)
        )
        return any(self._tiers.save_more(seat) for seat in seats)

    def flush(self) -> None:
        """Bring everything that may outlive the process into the store."""
        for seat in self._cells.idle():
            if seat.belonging.is_durable:
                self._tiers.save(seat, seat.length)

    def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        """Remove the words of `owner` that nobody else goes through, but for these token paths.
        Of requests that run, those that are forgotten belong to nobody from now on."""
        kept = [list(path) for path in paths]
        for seat in self._cells.seats:
            if seat.request is not None:
                seat.belonging = seat.request.belonging
            elif seat.is_idle and seat.belonging.names(owner):
                held = seat.token_ids[: seat.length]
                if not any(path[: seat.length] == held for path in kept):
                    self._cells.free(seat)
        self.store.forget(owner, kept)

    def retain(self, owners: Iterable[str]) -> None:
        """Remove the words of all others than these, but for requests that run."""
        known = frozenset(owners) | {""}
        for seat in self._cells.idle():
            if not known >= {seat.belonging.owner, seat.belonging.source}:
                self._cells.free(seat)
        self.store.retain(known)

    def forget_everything(self) -> None:
        """The memory is damaged: overwrite all of it. Running requests must be released first."""
        self._alone = None
        self._cells.clear()

    def check(self) -> None:
        """All books agree; for tests, as it reads all of them."""
        self._cells.check()
        self.store.check()

    def _seat_beside_others(
        self, request: Request, headroom: int, stored: Match
    ) -> tuple[Seat | None, Match]:
        """The way back takes more cells for a moment than reading does, so perhaps less comes
        back than is stored."""
        ways = [stored]
        if stored.segments:
            ways += [stored.without_last(), Match()]
        # A way that is too narrow changes nothing in the cells.
        source, num_held = self._longest_prefix(request)
        for way in dict.fromkeys(ways):
            seat, way = self._seat_for(request, headroom, way, source, num_held)
            if seat is not None:
                return seat, way
        return None, stored

    def _seat_for(
        self, request: Request, headroom: int, stored: Match, source: Seat | None, num_held: int
    ) -> tuple[Seat | None, Match]:
        """`source` holds `num_held` tokens of its beginning, more than any other seat."""
        if stored.length - num_held < MIN_STORE_TOKENS:
            stored = Match()
        elif not self.can_cut:
            # A state from the store needs an empty seat.
            source, num_held = None, 0
        headroom = max(headroom, _cells_for(stored, num_held) - request.num_tokens)
        seat = None
        if source is not None and source.is_idle and num_held == source.length:
            seat = self._continue(source, request, headroom)
        if seat is None and source is not None and num_held >= MIN_FORK_TOKENS:
            seat = self._fork(source, num_held, request, headroom) or self._cut(
                source, num_held, request, headroom
            )
        return seat or self._start_afresh(request, headroom), stored

    def _continue(self, source: Seat, request: Request, headroom: int) -> Seat | None:
        if request.leaves_nothing:
            return None
        needed = request.num_tokens - source.length + headroom
        return source if needed <= self._cells.num_obtainable(source.cells) else None

    def _fork(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        needed = request.num_tokens - num_held + headroom
        if not self.can_cut or needed > self._cells.num_obtainable(source.cells):
            return None
        seat = self._tiers.empty_seat(keep=source)
        if seat is not None:
            self._cells.fork(source, seat, num_held)
        return seat

    def _cut(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        """The last resort before reading all of it again: the other's end makes room."""
        needed = request.num_tokens - num_held + headroom
        if not source.is_idle or needed > self._cells.num_obtainable(source.cells[:num_held]):
            return None
        self._tiers.save(source, source.length)
        return source if self._cells.cut_back(source, num_held) else None

    def _start_afresh(self, request: Request, headroom: int) -> Seat | None:
        if request.num_tokens + headroom > self._cells.num_obtainable(_NO_CELLS):
            return None
        return self._tiers.empty_seat(keep=None)

    def _seat_alone(self, request: Request, stored: Match) -> tuple[Seat, Match]:
        """Cells from the first on, in the order of the tokens: where KV lies changes its sums."""
        assert not self._cells.running(), "a reproducible request waits until it is alone"
        seat = self._alone
        if seat is not None:
            limit = min(seat.num_canonical, request.num_tokens - 1)
            num_held = request.reusable(common_prefix(seat.token_ids, request.token_ids, limit))
            if num_held >= stored.length and self._cells.cut_back(seat, num_held):
                return seat, stored
        for idle in self._cells.idle():
            self._tiers.evict(idle)
        self._alone = self._cells.seats[0]
        # What has just left the cells can come back to where it belongs.
        return self._alone, self._stored(request)

    def _stored(self, request: Request) -> Match:
        is_reproducible = request.options.is_reproducible
        limit = request.num_tokens - 1
        stored = self.store.match(request.token_ids, limit, is_canonical=is_reproducible)
        length = request.reusable(stored.length)
        if length == stored.length:
            return stored
        if not self.can_cut:
            return Match()
        return Match(tuple(each for each in stored.segments if each.start < length), length)

    def _longest_prefix(self, request: Request) -> tuple[Seat | None, int]:
        best: Seat | None = None
        best_length = 0
        token_ids = request.token_ids
        for seat in self._cells.seats:
            limit = min(seat.length, len(token_ids) - 1)
            length = common_prefix(seat.token_ids, token_ids, limit)
            can_continue = seat.is_idle and seat.length == length
            if not (can_continue or self.can_cut):
                continue
            # Among equals, one that can simply be continued.
            if length > best_length or (length == best_length > 0 and can_continue):
                best, best_length = seat, length
        return best, best_length

    def _seat_of(self, request: Request) -> Seat:
        return self._cells.seats[request.seat_id]

    def _touch(self, seat: Seat) -> None:
        latest = max(each.last_used for each in self._cells.seats)
        # Two in one tick of the clock still have an order.
        seat.last_used = max(time.time(), float(np.nextafter(latest, np.inf)))


def _cells_for(stored: Match, num_held: int) -> int:
    """The most cells that the way back takes: each segment comes whole, beside what is held."""
    return max(
        (max(segment.start, num_held) + segment.num_tokens for segment in stored.segments),
        default=0,
    )


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
