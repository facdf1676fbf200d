"""What llama.cpp writes as the state of a sequence, and whether it may be given back to it.

    magic, sequence                      4 bytes each, as all words below
    attention, once or twice:            the second time for the layers with a sliding window
      streams, cells                     1, how many
      position, 1, [3 more,] sequence    of each cell; more in models that read images
      0, layers
      type, row size (8), rows           of the K of each layer, then of the V unless there is none
    recurrent, in models that are:
      1, position, 0, 0, layers          of its only cell
      the states of the layers

llama.cpp compares types and sizes itself. It trusts the positions, and an assertion of it ends
the process when a recurrent sequence has more than one cell.
"""

from dataclasses import dataclass
from struct import error as OutOfBounds
from struct import unpack_from

import numpy as np
from numpy.typing import NDArray

from engine.kv.segment import Blob

_MAGIC = 0xAF143CD8
_CELL_WORDS = (3, 6)
_MAX_LAYERS = 1024


@dataclass(frozen=True, slots=True)
class StateShape:
    """Which parts the states of a model have."""

    has_attention: bool
    is_recurrent: bool

    def is_state(self, blob: Blob, start: int, end: int) -> bool:
        """Whether it is the state of exactly the positions [start, end), from its lists of cells.

        Of the layers with a sliding window a recurrent model, which is written whole, has the
        last positions only.
        """
        data = blob.data
        try:
            if unpack_from("<I", data) != (_MAGIC,):
                return False
            offset = 8
            is_first = True
            while self.has_attention and offset < len(blob):
                if not is_first and self.is_recurrent and _is_recurrent_cell(data, offset, end):
                    break
                found = _attention(blob, offset)
                if found is None:
                    return False
                positions, offset = found
                may_be_less = self.is_recurrent and not is_first
                first = end - len(positions) if may_be_less else start
                if not start <= first or not _is_range(positions, first, end):
                    return False
                is_first = False
            return not self.is_recurrent or _is_recurrent_cell(data, offset, end)
        except OutOfBounds:
            return False


def _attention(blob: Blob, offset: int) -> tuple[NDArray[np.int32], int] | None:
    """The positions of its cells and where it ends, if there is the state of a cache here."""
    num_streams, num_cells = unpack_from("<II", blob.data, offset)
    offset += 8
    if num_streams != 1 or not 0 < num_cells <= len(blob):
        return None
    for num_words in _CELL_WORDS:
        after_cells = offset + 4 * num_words * num_cells
        if after_cells > len(blob):
            return None
        cells = blob[offset:after_cells].view(np.int32).reshape(num_cells, num_words)
        is_transposed, num_layers = unpack_from("<II", blob.data, after_cells)
        if is_transposed == 0 and num_layers <= _MAX_LAYERS and (cells[:, 1] == 1).all():
            for num_tensors in (2 * num_layers, num_layers):
                end = _after_tensors(blob, after_cells + 8, num_tensors, num_cells)
                if end is not None:
                    return cells[:, 0], end
    return None


def _after_tensors(blob: Blob, offset: int, num_tensors: int, num_cells: int) -> int | None:
    """Where so many tensors end, if something that can follow them stands there."""
    for _ in range(num_tensors):
        if offset + 12 > len(blob):
            return None
        (row_size,) = unpack_from("<Q", blob.data, offset + 4)
        offset += 12 + num_cells * row_size
    is_end = offset == len(blob)
    can_go_on = offset + 4 < len(blob) and unpack_from("<I", blob.data, offset) == (1,)
    return offset if is_end or can_go_on else None


def _is_recurrent_cell(data: memoryview, offset: int, end: int) -> bool:
    return unpack_from("<IiII", data, offset) == (1, end - 1, 0, 0)


def _is_range(positions: NDArray[np.int32], start: int, end: int) -> bool:
    """Each of [start, end) once, in any order."""
    return len(positions) == end - start and bool(
        (np.sort(positions) == np.arange(start, end)).all()
    )
