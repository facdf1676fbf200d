"""One sequence of the KV memory, and whose conversation sits on it."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.kv.segment import NOBODY, Segment
from engine.request import Request


@dataclass(frozen=True, slots=True)
class Return:
    """A segment on its way back into the cells; afterwards the seat holds `num_tokens`."""

    segment: Segment
    num_tokens: int


class Seat:
    """Owned by the engine thread. Only `Cells` changes what it holds.

    # a seat holds token_ids [0, length); its KV is in the cells of its sequence
    # running   its request reads or writes; the seat grows
    # idle      its request has ended; the seat waits for a prompt that continues it
    # empty     nothing held
    """

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
