"""KV in a pool of blocks of 16 tokens: sequences are lists of blocks, and share what they share.

    [0, length)                     the tokens of a sequence, in the blocks of its table
    [length, 16 * blocks)           room; whoever looks knows the length
    a block that several hold       is never written: who must write into it takes a copy first

So a fork copies nothing, and of a place within a block at most that one block, when it is written.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from engine.backends.torch.block_pool import BlockPool
from engine.backends.torch.kv_blob import read_blob, write_blob
from engine.kv.segment import Blob
from kernels.paged_kv import BLOCK_TOKENS, PagedKV, allocate


class BrokenCall(Exception):
    """We asked for something that the books do not allow; a fault of ours."""


class Reach(NamedTuple):
    """A sequence that is to have room for the tokens [length, end)."""

    sequence_id: int
    end: int


class TorchKVMemory:
    """Owned by the engine thread. Only the runner reserves and commits."""

    can_cut = True

    def __init__(
        self,
        *,
        num_layers: int,
        num_kv_heads: int,
        head_dim: int,
        num_cells: int,
        num_sequences: int,
        dtype: torch.dtype,
        device: torch.device,
        namespace: bytes,
    ) -> None:
        """Takes `bytes_for` so many cells at once."""
        self._num_cells = num_cells
        self._namespace = namespace
        self._pool = BlockPool(num_blocks_for(num_cells, num_sequences))
        self._tables: list[list[int]] = [[] for _ in range(num_sequences)]
        self._lengths = [0] * num_sequences
        self.layers: tuple[PagedKV, ...] = tuple(
            allocate(self._pool.num_blocks, num_kv_heads, head_dim, dtype, device)
            for _ in range(num_layers)
        )
        self._tensors = [
            each
            for layer in self.layers
            for each in (layer.keys, layer.values, layer.key_scales, layer.value_scales)
            if each is not None
        ]
        self._widths = [each[0, 0].numel() * each.element_size() for each in self._tensors]

    @property
    def num_cells(self) -> int:
        return self._num_cells

    @property
    def num_sequences(self) -> int:
        return len(self._tables)

    @property
    def max_export_tokens(self) -> int:
        return self._num_cells

    @property
    def namespace(self) -> bytes:
        return self._namespace

    @property
    def bytes_per_token(self) -> int:
        return sum(self._widths)

    @property
    def num_bytes(self) -> int:
        return sum(layer.num_bytes for layer in self.layers)

    def length(self, sequence_id: int) -> int:
        self._check_sequence(sequence_id)
        return self._lengths[sequence_id]

    def table(self, sequence_id: int) -> Sequence[int]:
        """The blocks of a sequence, in the order of its tokens."""
        return self._tables[sequence_id]

    def fork(self, source: int, target: int, num_tokens: int) -> None:
        if self.length(source) < num_tokens or self.length(target) != 0:
            raise BrokenCall(f"fork {source} -> {target} at {num_tokens}")
        shared = self._tables[source][: _num_blocks(num_tokens)]
        self._pool.share(shared)
        self._tables[target] = list(shared)
        self._lengths[target] = num_tokens

    def truncate(self, sequence_id: int, num_tokens: int) -> bool:
        if self.length(sequence_id) > num_tokens:
            self._lengths[sequence_id] = num_tokens
            self._give_back_room(sequence_id)
        return True

    def free(self, sequence_id: int) -> None:
        self.truncate(sequence_id, 0)

    def clear(self) -> None:
        for sequence_id in range(self.num_sequences):
            self.free(sequence_id)
        for tensor in self._tensors:
            tensor.zero_()

    def export(self, sequence_id: int, start: int, end: int) -> Blob | None:
        if not 0 <= start < end <= self.length(sequence_id):
            return None
        slots = torch.from_numpy(self.slots(sequence_id, start, end))
        rows = [_rows(each)[slots.to(each.device)].cpu().numpy() for each in self._tensors]
        return write_blob(start, end, np.concatenate(rows, axis=1))

    def restore(self, sequence_id: int, blob: Blob, start: int, end: int, num_tokens: int) -> bool:
        held = self.length(sequence_id)
        if not start <= held < num_tokens <= end:
            return False
        rows = read_blob(blob, start, end, self.bytes_per_token)
        if rows is None or not self.reserve([Reach(sequence_id, num_tokens)]):
            return False
        slots = torch.from_numpy(self.slots(sequence_id, held, num_tokens))
        # A blob may lie in memory that nobody may write to, which torch does not have.
        wanted = torch.from_numpy(rows[held - start : num_tokens - start].copy())
        begin = 0
        for tensor, width in zip(self._tensors, self._widths, strict=True):
            part = wanted[:, begin : begin + width].contiguous().to(tensor.device)
            _rows(tensor)[slots.to(tensor.device)] = part
            begin += width
        self.commit([Reach(sequence_id, num_tokens)])
        return True

    def cut(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        if not 0 < num_tokens <= end - start:
            return None
        rows = read_blob(blob, start, end, self.bytes_per_token)
        return None if rows is None else write_blob(start, start + num_tokens, rows[:num_tokens])

    def reserve(self, wanted: Sequence[Reach]) -> bool:
        """Room for each, distinct sequences, that may be written. False: there is none, nothing
        changed. Until `commit` or `give_back` the lengths are what they were."""
        shared = [each for each in wanted if self._writes_into_shared(each)]
        counts = [
            max(0, _num_blocks(end) - len(self._tables[sequence_id])) for sequence_id, end in wanted
        ]
        fresh = self._pool.allocate(len(shared) + sum(counts))
        if fresh is None:
            return False
        for sequence_id, _ in shared:
            self._copy_tail(sequence_id, fresh.pop())
        for (sequence_id, _), count in zip(wanted, counts, strict=True):
            for _ in range(count):
                self._tables[sequence_id].append(fresh.pop())
        return True

    def commit(self, written: Sequence[Reach]) -> None:
        """What was reserved has been written."""
        for sequence_id, end in written:
            assert _num_blocks(end) <= len(self._tables[sequence_id])
            self._lengths[sequence_id] = end

    def give_back(self, reserved: Sequence[Reach]) -> None:
        """What was reserved is not needed after all."""
        for sequence_id, _ in reserved:
            self._give_back_room(sequence_id)

    def slots(self, sequence_id: int, start: int, end: int) -> NDArray[np.int64]:
        """Where the tokens [start, end) lie or will lie: block * 16 + place."""
        positions = np.arange(start, end)
        blocks = np.asarray(self._tables[sequence_id], np.int64)[positions // BLOCK_TOKENS]
        return blocks * BLOCK_TOKENS + positions % BLOCK_TOKENS

    def close(self) -> None:
        """Let go of all memory. Calling it twice is harmless."""
        self.layers = ()
        self._tensors = []

    def check(self) -> None:
        """Each sequence has exactly the blocks that its tokens take, and the pool agrees."""
        self._pool.check(self._tables)
        for table, length in zip(self._tables, self._lengths, strict=True):
            assert len(table) == _num_blocks(length)

    def _writes_into_shared(self, reach: Reach) -> bool:
        length = self._lengths[reach.sequence_id]
        if length % BLOCK_TOKENS == 0 or reach.end <= length:
            return False
        return self._pool.is_shared(self._tables[reach.sequence_id][length // BLOCK_TOKENS])

    def _copy_tail(self, sequence_id: int, block: int) -> None:
        table = self._tables[sequence_id]
        tail = self._lengths[sequence_id] // BLOCK_TOKENS
        for tensor in self._tensors:
            tensor[block] = tensor[table[tail]]
        self._pool.release([table[tail]])
        table[tail] = block

    def _give_back_room(self, sequence_id: int) -> None:
        table = self._tables[sequence_id]
        kept = _num_blocks(self._lengths[sequence_id])
        self._pool.release(table[kept:])
        del table[kept:]

    def _check_sequence(self, sequence_id: int) -> None:
        if not 0 <= sequence_id < len(self._tables):
            raise BrokenCall(f"sequence {sequence_id} of {len(self._tables)}")


def num_blocks_for(num_cells: int, num_sequences: int) -> int:
    """So that cells never run out before the engine's books say so, which count tokens: of each
    sequence the last block may be nearly empty, and another one the copy of what it shares."""
    return _num_blocks(num_cells) + 2 * num_sequences


def _num_blocks(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_TOKENS)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """uint8 [num_blocks * 16, bytes of a token]; a view."""
    return tensor.view(tensor.shape[0] * BLOCK_TOKENS, -1).view(torch.uint8)
