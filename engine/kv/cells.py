"""The cells of a KV memory and the seats on them: two books that always say the same."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import KVMemory
from engine.kv.cell_pool import CellPool
from engine.kv.seat import Seat
from engine.kv.segment import Blob


class Cells:
    """Owned by the engine thread. Whatever changes the memory or the pool goes through here."""

    def __init__(self, memory: KVMemory) -> None:
        self._memory = memory
        self._pool = CellPool(memory.num_cells)
        self.seats = tuple(Seat(i, memory.num_cells) for i in range(memory.num_sequences))

    @property
    def can_cut(self) -> bool:
        return self._memory.can_cut

    @property
    def num_free(self) -> int:
        return self._pool.num_free

    @property
    def num_used(self) -> int:
        return self._pool.num_cells - self._pool.num_free

    def running(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.request is not None]

    def idle(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.is_idle]

    def empty(self) -> Iterator[Seat]:
        return (seat for seat in self.seats if seat.is_empty)

    def num_of(self, seats: list[Seat]) -> int:
        """Cells that at least one of these seats holds."""
        is_held = np.zeros(self._pool.num_cells, np.bool_)
        for seat in seats:
            is_held[seat.cells] = True
        return int(np.count_nonzero(is_held))

    def num_obtainable(self, keep: NDArray[np.int32]) -> int:
        """Cells that are free or would be, if every idle seat went except the cells in `keep`."""
        is_free = np.ones(self._pool.num_cells, np.bool_)
        is_free[keep] = False
        for seat in self.running():
            is_free[seat.cells] = False
        return int(np.count_nonzero(is_free))

    def take(self, seat: Seat, num_tokens: int) -> None:
        """Cells for tokens that are computed next; there must be room."""
        cells = self._pool.allocate(num_tokens)
        assert cells is not None, "nobody made room"
        seat.append(cells)

    def fork(self, source: Seat, target: Seat, num_tokens: int) -> None:
        """Let the empty `target` share the first tokens of `source`."""
        self._memory.fork(source.sequence_id, target.sequence_id, num_tokens)
        shared = source.cells[:num_tokens]
        self._pool.share(shared)
        target.append(shared)
        target.num_canonical = min(source.num_canonical, num_tokens)
        target.num_stored = min(source.num_stored, num_tokens)

    def cut_back(self, seat: Seat, num_tokens: int) -> bool:
        """Keep the first tokens of a seat. False: this model's state cannot be cut."""
        held = self._memory.length(seat.sequence_id)
        if held > num_tokens and not self._memory.truncate(seat.sequence_id, num_tokens):
            return False
        self._shrink(seat, num_tokens)
        return True

    def free(self, seat: Seat) -> None:
        self._memory.free(seat.sequence_id)
        self._shrink(seat, 0)

    def clear(self) -> None:
        """Overwrite everything. No request may run."""
        for seat in self.seats:
            assert seat.request is None
            self._shrink(seat, 0)
        self._memory.clear()

    def export(self, seat: Seat, start: int, end: int) -> Blob | None:
        return self._memory.export(seat.sequence_id, start, end)

    def restore(self, seat: Seat, blob: Blob, start: int, end: int, num_tokens: int) -> bool:
        """Let the seat hold `num_tokens`, from a blob of [start, end); so many cells are free."""
        assert end - start <= self.num_free
        if not self._memory.restore(seat.sequence_id, blob, start, end, num_tokens):
            return False
        self.take(seat, num_tokens - seat.length)
        return True

    def cut_blob(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        """The blob of the first tokens of [start, end); so many cells and a seat are free."""
        assert end - start <= self.num_free
        return self._memory.cut(blob, start, end, num_tokens)

    def check(self) -> None:
        """Our books agree with the memory's, and no cell is lost or counted twice."""
        self._pool.check()
        held = np.concatenate([seat.cells for seat in self.seats])
        assert len(np.unique(held)) == self.num_used
        for seat in self.seats:
            assert len(np.unique(seat.cells)) == seat.length
            assert self._memory.length(seat.sequence_id) == seat.length
            assert len(seat.token_ids) >= seat.length
            assert seat.num_canonical <= seat.length
            assert seat.request is not None or not seat.returning

    def _shrink(self, seat: Seat, num_tokens: int) -> None:
        if seat.length > num_tokens:
            self._pool.release(seat.cells[num_tokens:].copy())
            seat.shrink(num_tokens)
