"""Computes with the torch backend, step by step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.torch.backend import TorchBackend
from engine.backends.torch.step_inputs import Part
from engine.config import EngineConfig


def opened(path: Path, **changes: Any) -> TorchBackend:
    """On one thread: two that wait for each other are slow where others are at work, too."""
    known: dict[str, Any] = {"context_tokens": 256, "max_sequences": 4, "max_running": 4}
    return TorchBackend(EngineConfig(model_path=path, threads=1, **{**known, **changes}))


def logits_of(
    backend: TorchBackend, token_ids: Sequence[int], pieces: Sequence[int], sequence_id: int = 0
) -> NDArray[np.float32]:
    """Of every token, which are read in pieces of these sizes; the last one takes the rest."""
    found = []
    start = 0
    for size in [*pieces, len(token_ids) - sum(pieces)]:
        piece = list(token_ids[start : start + size])
        computed = backend.model_runner.compute([Part(sequence_id, start, piece, len(piece))])
        assert not isinstance(computed, StepFailure), computed
        found.append(computed.copy())
        start += size
    return np.concatenate(found)


def greedy(
    backend: TorchBackend, prompt: Sequence[int], count: int, sequence_id: int = 0
) -> list[int]:
    token_ids: list[int] = []
    row = logits_of(backend, prompt, [], sequence_id)[-1]
    for number in range(count):
        token_ids.append(int(row.argmax()))
        part = Part(sequence_id, len(prompt) + number, token_ids[-1:], 1)
        computed = backend.model_runner.compute([part])
        assert not isinstance(computed, StepFailure), computed
        row = computed[-1]
    return token_ids
