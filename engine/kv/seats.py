"""Who sits on which sequence of the KV memory, and what a newcomer need not read again.

# a seat holds token_ids [0, length); its KV is in the cells of its sequence
# running   its request reads or writes; the seat grows
# idle      its request has ended; the seat waits for a prompt that continues it
# empty     nothing held

A prompt that continues an idle seat takes it over. One that shares only a beginning forks it, so
that the other conversation keeps its end. The least recently used idle seat goes first.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import KVMemory
from engine.kv.cell_pool import CellPool
from engine.request import Request

# Below this a fork saves less than the bookkeeping costs.
MIN_FORK_TOKENS = 8


class Seat:
    """One sequence. Only `Seats` changes it."""

    def __init__(self, sequence_id: int, num_cells: int) -> None:
        self.sequence_id = sequence_id
        self.request: Request | None = None
        self.length = 0
        self.last_used = 0
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

    def keep(self, token_ids: list[int]) -> None:
        self._token_ids = token_ids


class Seats:
    """The only door to the KV memory. Owned by the engine thread."""

    def __init__(self, memory: KVMemory) -> None:
        self._memory = memory
        self._pool = CellPool(memory.num_cells)
        self._seats = [Seat(i, memory.num_cells) for i in range(memory.num_sequences)]
        self._clock = 0

    @property
    def num_free_cells(self) -> int:
        return self._pool.num_free

    @property
    def num_idle(self) -> int:
        return sum(seat.is_idle for seat in self._seats)

    def admit(self, request: Request, headroom: int) -> bool:
        """Seat a waiting request on the longest beginning that is already held.

        Sets its `sequence_id` and `num_computed_tokens`. At least its last token is left to
        compute, because a full hit would bring no logits. False: no seat or no room for the
        rest and `headroom` tokens; nothing changed.
        """
        source, num_held = self._longest_prefix(request.token_ids)
        seat = None
        if source is not None and source.is_idle and num_held == source.length:
            seat = self._continue(source, request, headroom)
        elif source is not None and num_held >= MIN_FORK_TOKENS and self._memory.can_fork:
            seat = self._fork(source, num_held, request, headroom) or self._cut(
                source, num_held, request, headroom
            )
        if seat is None:
            seat = self._start_afresh(request, headroom)
        if seat is None:
            return False
        seat.request = request
        self._touch(seat)
        request.sequence_id = seat.sequence_id
        request.num_computed_tokens = seat.length
        return True

    def _continue(self, source: Seat, request: Request, headroom: int) -> Seat | None:
        needed = request.num_tokens - source.length + headroom
        return source if needed <= self._num_obtainable(source.cells) else None

    def _fork(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        needed = request.num_tokens - num_held + headroom
        if needed > self._num_obtainable(source.cells):
            return None
        seat = self._empty_seat(keep=source)
        if seat is not None:
            self._memory.fork(source.sequence_id, seat.sequence_id, num_held)
            self._pool.share(source.cells[:num_held])
            seat.append(source.cells[:num_held])
        return seat

    def _cut(self, source: Seat, num_held: int, request: Request, headroom: int) -> Seat | None:
        """The last resort before reading all of it again: the other's end makes room."""
        needed = request.num_tokens - num_held + headroom
        if not source.is_idle or needed > self._num_obtainable(source.cells[:num_held]):
            return None
        if not self._memory.truncate(source.sequence_id, num_held):
            return None
        self._shrink(source, num_held)
        return source

    def _start_afresh(self, request: Request, headroom: int) -> Seat | None:
        if request.num_tokens + headroom > self._num_obtainable(_NO_CELLS):
            return None
        return self._empty_seat(keep=None)

    def extend(self, request: Request, num_tokens: int) -> bool:
        """Cells for the next tokens of a running request. False: no room, nothing is lost."""
        seat = self._seat_of(request)
        while self._pool.num_free < num_tokens:
            if not self._evict_one(keep=seat):
                return False
        cells = self._pool.allocate(num_tokens)
        assert cells is not None
        seat.append(cells)
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

    def release(self, request: Request) -> None:
        """The request leaves; what it computed stays for whoever continues it."""
        seat = self._seat_of(request)
        self._shrink(seat, request.num_computed_tokens)
        seat.keep(request.token_ids[: seat.length])
        seat.request = None
        request.sequence_id = None
        self._touch(seat)
        if seat.length == 0:
            self._memory.free(seat.sequence_id)

    def forget_everything(self) -> None:
        """The memory is damaged: overwrite all of it. Running requests must be released first."""
        for seat in self._seats:
            assert seat.request is None
            self._shrink(seat, 0)
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

    def _seat_of(self, request: Request) -> Seat:
        return self._seats[request.seat_id]

    def _touch(self, seat: Seat) -> None:
        self._clock += 1
        seat.last_used = self._clock

    def _longest_prefix(self, token_ids: list[int]) -> tuple[Seat | None, int]:
        best: Seat | None = None
        best_length = 0
        for seat in self._seats:
            limit = min(seat.length, len(token_ids) - 1)
            length = common_prefix(seat.token_ids, token_ids, limit)
            # Among equals, one that can simply be continued.
            if length > best_length or (
                length == best_length > 0 and seat.is_idle and seat.length == length
            ):
                best, best_length = seat, length
        return best, best_length

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

    def _evict_one(self, keep: Seat | None) -> bool:
        idle = [seat for seat in self._idle() if seat is not keep]
        if not idle:
            return False
        seat = min(idle, key=lambda seat: seat.last_used)
        self._memory.free(seat.sequence_id)
        self._shrink(seat, 0)
        return True

    def _idle(self) -> Iterator[Seat]:
        return (seat for seat in self._seats if seat.is_idle)

    def _shrink(self, seat: Seat, num_tokens: int) -> None:
        if seat.length > num_tokens:
            self._pool.release(seat.cells[num_tokens:].copy())
            seat.length = num_tokens


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
