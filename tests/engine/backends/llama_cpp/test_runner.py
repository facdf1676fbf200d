"""How many threads a step gets."""

from time import perf_counter
from typing import cast

import numpy as np
import pytest

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.runner import SHORT_PIECE_TOKENS, LlamaRunner
from engine.backends.llama_cpp.step_batch import Part
from engine.batch import Batch, ScheduledRequest
from engine.clock import Spent
from engine.request import Request, RequestOptions
from engine.sampling_params import SamplingParams


class SlowSecondThread:
    """A context whose steps take ten times as long on two threads, as on a busy machine."""

    def __init__(self) -> None:
        self.threads = 0
        self.used: list[int] = []
        self.computing = Spent()

    def set_threads(self, count: int) -> None:
        self.threads = count

    def decode(self, parts: list[Part], *, is_reproducible: bool = False) -> StepFailure | None:
        self.used.append(self.threads)
        end = perf_counter() + (0.004 if self.threads > 1 else 0.0004)
        with self.computing:
            while perf_counter() < end:
                pass
        return None

    def logits(self, num_rows: int) -> np.ndarray:
        return np.zeros((num_rows, 4), np.float32)


def step(num_tokens: int, *, is_reproducible: bool = False) -> Batch:
    options = RequestOptions(is_reproducible=is_reproducible)
    request = Request(list(range(num_tokens)), SamplingParams(), options=options, sequence_id=0)
    return Batch((ScheduledRequest.of(request, num_tokens),))


@pytest.fixture
def context() -> SlowSecondThread:
    return SlowSecondThread()


@pytest.fixture
def runner(context: SlowSecondThread) -> LlamaRunner:
    return LlamaRunner(cast(LlamaContext, context), 2, adapt_threads=True)


def test_a_short_prompt_uses_what_decoding_found_fast(
    context: SlowSecondThread, runner: LlamaRunner
) -> None:
    for _ in range(40):
        runner.execute(step(1))
    runner.execute(step(SHORT_PIECE_TOKENS))
    assert context.used[-1] == 1


def test_a_long_prompt_is_read_on_all_threads(
    context: SlowSecondThread, runner: LlamaRunner
) -> None:
    for _ in range(40):
        runner.execute(step(1))
    runner.execute(step(SHORT_PIECE_TOKENS + 1))
    assert context.used[-1] == 2


def test_a_chosen_number_of_threads_stays(context: SlowSecondThread) -> None:
    runner = LlamaRunner(cast(LlamaContext, context), 2, adapt_threads=False)
    for num_tokens in (1, SHORT_PIECE_TOKENS, 200) * 20:
        runner.execute(step(num_tokens))
    assert set(context.used) == {2}


def test_a_reproducible_step_uses_all_threads_and_teaches_nothing(
    context: SlowSecondThread, runner: LlamaRunner
) -> None:
    """Its sums are taken in the same order whatever the machine does beside it."""
    for num_tokens in (1, SHORT_PIECE_TOKENS) * 20:
        runner.execute(step(num_tokens, is_reproducible=True))
    assert set(context.used) == {2}
    # The tuner begins as if none of them had been: its first steps are on all threads too.
    before = len(context.used)
    for _ in range(40):
        runner.execute(step(1))
    assert context.used[before : before + 4] == [2] * 4
    assert context.used[-1] == 1
    runner.execute(step(1, is_reproducible=True))
    assert context.used[-1] == 2


def test_a_steps_cost_is_the_processor_time_of_all_its_threads() -> None:
    context = SlowSecondThread()
    runner = LlamaRunner(cast(LlamaContext, context), 2, adapt_threads=False)
    for _ in range(3):
        before = context.computing.processor
        runner.execute(step(1))
        assert runner.step_cost == pytest.approx(2 * (context.computing.processor - before))
