"""Turn a Batch into logits: prompts and answers side by side, over block tables."""

import logging
from threading import Event
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.runner import SHORT_PIECE_TOKENS
from engine.backends.llama_cpp.threads import ThreadTuner
from engine.backends.torch.decoder import Decoder
from engine.backends.torch.kv_memory import BrokenCall, Reach, TorchKVMemory
from engine.backends.torch.step_inputs import Part, step_inputs
from engine.batch import Batch
from engine.clock import Spent

logger = logging.getLogger(__name__)

_NO_ROWS: NDArray[np.float32] = np.empty((0, 0), np.float32)


class TorchRunner:
    """Owned by the engine thread, except `abort_step`."""

    def __init__(
        self,
        decoder: Decoder,
        memory: TorchKVMemory,
        device: torch.device,
        *,
        num_tokens: int,
        num_threads: int,
        adapt_threads: bool = False,
    ) -> None:
        """`num_tokens` of the vocabulary: a model may have rows beyond them."""
        self._decoder: Decoder | None = decoder
        self._memory = memory
        self._device = device
        self._num_tokens = num_tokens
        # On busy cores threads that wait for one another are slower than one alone.
        self._tuner = ThreadTuner(num_threads) if adapt_threads else None
        self._max_threads = num_threads
        self._num_threads = 0
        self._use_threads(num_threads)
        self._is_aborted = Event()
        self._step_cost = 0.0
        self.computing = Spent()

    @property
    def step_cost(self) -> float:
        return self._step_cost

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        parts = [
            Part(item.request.seat_id, item.start, item.token_ids, item.num_rows)
            for item in batch.scheduled
        ]
        # With another number of threads sums are taken in another order.
        tuner = None if batch.is_reproducible else self._tuner
        if tuner is None or batch.num_tokens > SHORT_PIECE_TOKENS:
            self._use_threads(self._max_threads)
        else:
            self._use_threads(tuner.choose(len(parts)) if batch.is_decode else tuner.current)
        began = perf_counter()
        computed = self.compute(parts)
        if tuner is not None and batch.is_decode and not isinstance(computed, StepFailure):
            tuner.record(perf_counter() - began)
        return computed

    def compute(self, parts: list[Part]) -> NDArray[np.float32] | StepFailure:
        """Each sequence at most once. After a failure each holds what it held before."""
        self._check(parts)
        reach = [Reach(part.sequence_id, part.end) for part in parts]
        if not self._memory.reserve(reach):
            return StepFailure.NO_ROOM
        began, processor_before = perf_counter(), self.computing.processor
        try:
            with self.computing:
                logits = self._forward(parts)
        except torch.OutOfMemoryError as error:
            logger.warning("a step found no memory: %s", error)
            self._memory.give_back(reach)
            return StepFailure.NO_ROOM
        except RuntimeError as error:
            logger.error("a step could not be computed: %s", error)
            self._memory.give_back(reach)
            return StepFailure.BROKEN
        if logits is None:
            self._memory.give_back(reach)
            return StepFailure.ABORTED
        self._memory.commit(reach)
        if self._device.type == "cpu":
            self._step_cost = (self.computing.processor - processor_before) * self._num_threads
        else:
            self._step_cost = perf_counter() - began
        return logits

    def abort_step(self) -> None:
        self._is_aborted.set()

    def accept_steps(self) -> None:
        self._is_aborted.clear()

    def close(self) -> None:
        """Let go of the weights. Calling it twice is harmless."""
        self._decoder = None

    def _forward(self, parts: list[Part]) -> NDArray[np.float32] | None:
        assert self._decoder is not None, "the model was closed"
        with torch.inference_mode():
            inputs = step_inputs(parts, self._memory, self._device)
            hidden = self._decoder.hidden(inputs, self._memory.layers, self._is_aborted.is_set)
            if hidden is None:
                return None
            if len(inputs.rows) == 0:
                return _NO_ROWS
            logits = self._decoder.logits(hidden)[:, : self._num_tokens]
            found: NDArray[np.float32] = logits.cpu().numpy()
            return found

    def _use_threads(self, count: int) -> None:
        if count != self._num_threads:
            torch.set_num_threads(count)
            self._num_threads = count

    def _check(self, parts: list[Part]) -> None:
        for part in parts:
            held = self._memory.length(part.sequence_id)
            if held != part.start:
                raise BrokenCall(f"sequence {part.sequence_id} holds {held}, not {part.start}")
            if not part.token_ids or not 0 <= min(part.token_ids) <= max(part.token_ids) < (
                self._num_tokens
            ):
                raise BrokenCall(
                    f"no tokens, or one outside the vocabulary of {self._num_tokens:,}"
                )
        if not parts or len(parts) != len({part.sequence_id for part in parts}):
            raise BrokenCall("an empty batch, or a sequence twice in it")
