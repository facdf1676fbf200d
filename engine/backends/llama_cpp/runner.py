"""Turn a Batch into logits with a llama.cpp context, on as many threads as are fast now."""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.media_reader import MediaReader
from engine.backends.llama_cpp.step_batch import MediaPart, Part
from engine.backends.llama_cpp.threads import ThreadTuner
from engine.batch import Batch, ScheduledRequest
from engine.clock import Spent

# A long piece of a prompt shares its work out as it goes, so a busy core hardly delays it. A short
# one is waiting at barriers, like decoding: with both of 2 cores busy, 16 tokens took 3 to 5 times
# as long on 2 threads as on 1, and 256 tokens 0.8 times.
SHORT_PIECE_TOKENS = 64


class LlamaRunner:
    """Owned by the engine thread, except `abort_step`."""

    def __init__(
        self,
        context: LlamaContext,
        threads: int,
        *,
        adapt_threads: bool,
        media: MediaReader | None = None,
    ) -> None:
        self._context = context
        self._media = media
        self._tuner = ThreadTuner(threads) if adapt_threads else None
        self._max_threads = self._set_threads = threads
        self._step_processor_s = 0.0
        context.set_threads(threads)

    @property
    def computing(self) -> Spent:
        """The time inside llama.cpp's decode, without the Python that prepares it."""
        return self._context.computing

    @property
    def step_cost(self) -> float:
        # All threads work from its beginning to its end, each as long as this one.
        return self._step_processor_s * self._set_threads

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        # With another number of threads sums are taken in another order.
        tuner = None if batch.is_reproducible else self._tuner
        is_decode = batch.is_decode
        self._use_threads(self._num_threads(batch, tuner, is_decode))
        started, processor_before = perf_counter(), self.computing.processor
        failure = self._compute(batch)
        if failure is not None:
            return failure
        self._step_processor_s = self.computing.processor - processor_before
        num_rows = batch.num_rows
        # Reading the logits waits for the computation, so it belongs to the step's time.
        logits = self._context.logits(num_rows) if num_rows else _NO_ROWS
        seconds = perf_counter() - started
        if tuner and is_decode:
            tuner.record(seconds)
        return logits

    def _compute(self, batch: Batch) -> StepFailure | None:
        """What is seen or heard goes first: the logits of the last decode are those that count."""
        parts: list[Part] = []
        for item in batch.scheduled:
            if item.span is None:
                parts.append(Part(item.request.seat_id, item.start, item.token_ids, item.num_rows))
            elif (failure := self._context.decode_media(self._media_part(item))) is not None:
                return failure
        if not parts:
            return None
        return self._context.decode(parts)

    def _media_part(self, item: ScheduledRequest) -> MediaPart:
        span = item.span
        assert span is not None and self._media is not None, "nobody reads pictures"
        begin = item.start - span.start
        embeddings = self._media.embeddings(span)[begin : begin + item.num_known]
        return MediaPart(item.request.seat_id, item.start, embeddings, span.is_whole)

    def abort_step(self) -> None:
        self._context.abort_step()

    def accept_steps(self) -> None:
        self._context.accept_steps()

    def _num_threads(self, batch: Batch, tuner: ThreadTuner | None, is_decode: bool) -> int:
        if tuner is None or (not is_decode and batch.num_tokens > SHORT_PIECE_TOKENS):
            return self._max_threads
        return tuner.choose(len(batch.scheduled)) if is_decode else tuner.current

    def _use_threads(self, count: int) -> None:
        if count != self._set_threads:
            self._context.set_threads(count)
            self._set_threads = count


_NO_ROWS: NDArray[np.float32] = np.empty((0, 0), np.float32)
