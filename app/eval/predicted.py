"""What a model file predicts of a text, row by row, and how fast it is at that.

The file is opened without an engine: a plain context, one sequence, so nothing but the weights and
the type of its KV makes a difference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part
from engine.batch import MAX_GUESSED
from engine.errors import EngineError, UsageError

ROWS = 64
WRITTEN_TOKENS = 24
BROKEN = "The model could not compute the text: choose another model."


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one window: `logits` `[num_rows, num_tokens]`, valid until the next piece, and the
    tokens that really came after each."""

    logits: NDArray[np.float32]
    targets: Sequence[int]


class Predictor:
    """A model and a context, closed with the `with` block. Used by one thread."""

    def __init__(self, path: Path, *, window: int, threads: int, kv_type: KVType = "f16") -> None:
        self._model = LlamaModel(path)
        self._window = window
        try:
            wanted = self._model.kv_shape.head_sizes
            if kv_type != "f16" and any(size % 32 for size in wanted):
                raise UsageError(
                    f"The heads of this model have {min(wanted)} numbers, and {kv_type} needs a"
                    " multiple of 32: leave this type of KV out."
                )
            self._context = LlamaContext(
                self._model,
                num_cells=max(256, window + WRITTEN_TOKENS),
                num_sequences=ROWS - MAX_GUESSED,
                max_batch_tokens=window,
                kv_type=kv_type,
            )
        except BaseException:
            self._model.close()
            raise
        self._context.set_threads(threads)
        self.kv_bytes_per_token = self._model.kv_shape.bytes_per_token(kv_type)
        self._read: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
        self._model.close()

    @property
    def num_vocabulary(self) -> int:
        return self._model.vocabulary.num_tokens

    def tokens(self, text: str) -> list[int]:
        return self._model.vocabulary.encode(text)

    def windows(self, tokens: Sequence[int], most: int) -> list[list[int]]:
        """Whole windows only, `most` at most; each begins as the model wants a text to begin."""
        bos = self._model.vocabulary.bos_id
        begin = [] if bos is None else [bos]
        step = self._window - len(begin)
        starts = range(0, len(tokens) - step + 1, step)
        return [[*begin, *tokens[start : start + step]] for start in starts][:most]

    def pieces(self, windows: Sequence[Sequence[int]]) -> Iterator[Piece]:
        """The second half of each window, in pieces."""
        for window in windows:
            half = len(window) // 2
            began = perf_counter()
            self._decode(Part(0, 0, list(window[:half]), 0))
            self._read.append(half / (perf_counter() - began))
            for start in range(half, len(window), ROWS):
                tokens = list(window[start : start + ROWS])
                self._decode(Part(0, start, tokens, len(tokens)))
                targets = window[start + 1 : start + 1 + len(tokens)]
                # Nothing is known of what comes after the window.
                yield Piece(self._context.logits(len(tokens))[: len(targets)], targets)
            self._context.free(0)

    @property
    def read_tokens_per_second(self) -> float:
        """Of the windows' first halves: the best, for what else ran made the others slower."""
        return max(self._read, default=0.0)

    def write_tokens_per_second(self) -> float:
        """A token at a time, after a short text; the middle one of them."""
        seconds = []
        self._decode(Part(0, 0, [0] * 8, 1))
        for place in range(8, 8 + WRITTEN_TOKENS):
            began = perf_counter()
            self._decode(Part(0, place, [0], 1))
            self._context.logits(1)
            seconds.append(perf_counter() - began)
        self._context.free(0)
        return 1.0 / median(seconds)

    def _decode(self, part: Part) -> None:
        if self._context.decode([part]) is not None:
            raise EngineError(BROKEN)
