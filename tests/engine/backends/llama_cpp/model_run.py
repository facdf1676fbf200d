"""Drives an engine over a real model, and compares texts up to near-ties."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import Backend
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig
from engine.engine import Engine, RequestFailure
from engine.guided.answer import Guidance
from engine.metrics import Timings
from engine.request import IN_FRONT, Request, RequestOptions, RequestOutput
from engine.sampling.draft_gate import StepCosts
from engine.sampling_params import SamplingParams

GREEDY = SamplingParams(temperature=0.0, max_tokens=16, ignore_eos=True, loop_guard=False)
# Two shapes of one computation differ by this much, so closer logits may change places.
NEAR_TIE = 0.5


class ModelRun:
    """One engine over a backend whose memory is empty."""

    def __init__(
        self, backend: Backend, config: EngineConfig, costs: StepCosts | None = None
    ) -> None:
        self.backend = backend
        self.engine = Engine(backend, config, costs)
        self.tokens: dict[int, list[int]] = {}
        self.ended: list[int] = []
        self.last: dict[int, RequestOutput | RequestFailure] = {}

    def encode(self, text: str) -> list[int]:
        return self.backend.tokenizer.encode(text)

    def submit(
        self,
        prompt: Sequence[int],
        options: RequestOptions = IN_FRONT,
        guidance: Guidance | None = None,
        **changes: object,
    ) -> int:
        request = Request(list(prompt), replace(GREEDY, **changes), options, guidance)
        self.engine.add_request(request)
        self.tokens[request.request_id] = []
        return request.request_id

    def step(self) -> None:
        self.engine.accept_steps()
        self.take(self.engine.step())

    def take(self, outputs: Iterable[RequestOutput | RequestFailure]) -> None:
        """What a step gave."""
        for output in outputs:
            if isinstance(output, RequestOutput):
                self.tokens[output.request_id].extend(output.token_ids)
            self.last[output.request_id] = output
            if isinstance(output, RequestFailure) or output.finish_reason is not None:
                self.ended.append(output.request_id)
        self.engine.check()

    def finish(self, limit: int = 2000) -> None:
        for _ in range(limit):
            if not self.engine.has_work:
                return
            self.step()
        raise AssertionError(f"still at work after {limit} steps")

    def answer(self, prompt: Sequence[int], **changes: object) -> list[int]:
        number = self.submit(prompt, **changes)
        self.finish()
        return self.tokens[number]

    def timings(self, number: int) -> Timings:
        last = self.last[number]
        assert isinstance(last, RequestOutput) and last.timings is not None
        return last.timings

    def cached_tokens(self, number: int) -> int:
        return self.timings(number).cached_tokens


@contextmanager
def small_context(
    model: LlamaModel, num_cells: int = 512, max_batch_tokens: int = 64
) -> Iterator[LlamaContext]:
    context = LlamaContext(
        model, num_cells=num_cells, num_sequences=4, max_batch_tokens=max_batch_tokens
    )
    context.set_threads(1)
    yield context
    context.close()


def logits_after(context: LlamaContext, token_ids: Sequence[int]) -> NDArray[np.float32]:
    """Computed from nothing, on sequence 0."""
    context.free(0)
    for start in range(0, len(token_ids), 64):
        piece = list(token_ids[start : start + 64])
        assert context.decode([Part(0, start, piece, 1)]) is None
    return context.logits(1)[0].copy()


def assert_same_up_to_near_ties(
    model: LlamaModel, prompt: Sequence[int], one: Sequence[int], other: Sequence[int]
) -> None:
    """Equal, or different first where the two best logits are close."""
    assert one and len(one) == len(other)
    for index, (left, right) in enumerate(zip(one, other, strict=True)):
        if left == right:
            continue
        prefix = [*prompt, *one[:index]]
        # In one piece, as a prompt is read: pieces shift the logits by more than the bound.
        with small_context(model, len(prefix), max_batch_tokens=max(32, len(prefix))) as context:
            assert context.decode([Part(0, 0, prefix, 1)]) is None
            logits = context.logits(1)[0].copy()
        best, second = np.sort(logits)[::-1][:2]
        assert best - second < NEAR_TIE, (index, left, right, best - second)
        # Both took one of the close ones.
        assert min(logits[left], logits[right]) > best - NEAR_TIE
        return
