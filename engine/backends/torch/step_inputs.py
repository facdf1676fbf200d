"""What the layers need to know of a step, on the device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.backends.torch.kv_memory import TorchKVMemory


class Part(NamedTuple):
    """The tokens of one sequence in a step, from position `start` on.

    The logits after the last `num_rows` of them are wanted.
    """

    sequence_id: int
    start: int
    token_ids: list[int]
    num_rows: int

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepInputs:
    """All tokens of a step one behind the other, `n` of them, of `s` sequences.

    `query_starts` None: one token of each sequence, as in decoding. What stands in a row of
    `block_tables` beyond the length of its sequence is never read.
    """

    token_ids: Tensor
    """int64 [n]."""
    positions: Tensor
    """int64 [n]."""
    slots: Tensor
    """int64 [n]: where the K and V of each go."""
    block_tables: Tensor
    """int32 [s, most blocks of one]."""
    lengths: Tensor
    """int32 [s], with the new tokens."""
    query_starts: Tensor | None
    """int32 [s + 1]."""
    rows: Tensor
    """int64 [num_rows]: which of the tokens want logits."""


def step_inputs(parts: Sequence[Part], memory: TorchKVMemory, device: torch.device) -> StepInputs:
    """Of parts for which `memory` has reserved room."""
    counts = [len(part.token_ids) for part in parts]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    tables = [memory.table(part.sequence_id) for part in parts]
    padded = np.zeros((len(parts), max(map(len, tables))), np.int32)
    for row, table in zip(padded, tables, strict=True):
        row[: len(table)] = table

    def on_device(values: Sequence[np.ndarray] | np.ndarray, kind: type) -> Tensor:
        found = values if isinstance(values, np.ndarray) else np.concatenate(values)
        return torch.from_numpy(found.astype(kind)).to(device)

    return StepInputs(
        token_ids=on_device([np.asarray(part.token_ids) for part in parts], np.int64),
        positions=on_device([np.arange(part.start, part.end) for part in parts], np.int64),
        slots=on_device(
            [memory.slots(part.sequence_id, part.start, part.end) for part in parts], np.int64
        ),
        block_tables=on_device(padded, np.int32),
        lengths=on_device(np.array([part.end for part in parts]), np.int32),
        query_starts=None if len(parts) == starts[-1] else on_device(starts, np.int32),
        rows=on_device(
            [
                np.arange(end - part.num_rows, end)
                for part, end in zip(parts, starts[1:], strict=True)
            ],
            np.int64,
        ),
    )
