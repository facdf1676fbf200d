"""KV cells counted by how many sequences share them."""

import numpy as np
from numpy.typing import NDArray


class CellPool:
    """Names for the cells of a KV memory. Owned by the engine thread.

    One cell holds one token; a forked sequence shares cells, so a cell is free again only when
    its last sequence lets go. The ids are ours: llama.cpp places tokens as it likes.
    """

    def __init__(self, num_cells: int) -> None:
        self.num_cells = num_cells
        self._free = np.arange(num_cells - 1, -1, -1, dtype=np.int32)
        self._num_free = num_cells
        self._ref_counts = np.zeros(num_cells, np.int32)

    @property
    def num_free(self) -> int:
        return self._num_free

    def allocate(self, count: int) -> NDArray[np.int32] | None:
        """`count` cells with one reference each. None: no room, nothing changed."""
        if count > self._num_free:
            return None
        cells = self._free[self._num_free - count : self._num_free].copy()
        self._num_free -= count
        if count == 1:
            # A decode step takes one for each request, and an array as index costs ten times this.
            self._ref_counts[cells.item()] = 1
        else:
            self._ref_counts[cells] = 1
        return cells

    def share(self, cells: NDArray[np.int32]) -> None:
        self._ref_counts[cells] += 1

    def release(self, cells: NDArray[np.int32]) -> None:
        """Let go of each of `cells`, which must be distinct."""
        self._ref_counts[cells] -= 1
        freed = cells[self._ref_counts[cells] == 0]
        self._free[self._num_free : self._num_free + len(freed)] = freed
        self._num_free += len(freed)

    def check(self) -> None:
        """Every cell is free or referenced, and never both."""
        free = sorted(self._free[: self._num_free].tolist())
        assert free == np.flatnonzero(self._ref_counts == 0).tolist()
        assert (self._ref_counts >= 0).all()
