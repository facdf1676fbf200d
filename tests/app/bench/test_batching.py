"""The two ways of batching, run on a fake engine whose time is its own."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.bench.batching import Outcome, mixed, outcome_of, run_continuous, run_static
from app.bench.our_engine import Stream
from app.bench.workload import Generation, Prompts
from tests.fakes_text import FakeTokenizer


class StepEngine:
    """Writes one token of each running generation a step, at most `places` at once."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self.steps = 0
        self.most_running = 0
        self._left: dict[int, int] = {}
        self._ended = asyncio.Condition()

    async def follow(self, generation: Generation, began: float) -> Stream:
        async with self._places:
            key = id(generation)
            self._left[key] = generation.num_tokens
            self.most_running = max(self.most_running, len(self._left))
            async with self._ended:
                await self._ended.wait_for(lambda: self._left[key] == 0)
            del self._left[key]
            return Stream((float(self.steps),) * generation.num_tokens, 0.0)

    async def work(self) -> None:
        while True:
            # Whoever was let in during this round is there before the next step.
            for _ in range(20):
                await asyncio.sleep(0)
            if self._left:
                self.steps += 1
                self._left = {key: max(0, left - 1) for key, left in self._left.items()}
                async with self._ended:
                    self._ended.notify_all()


Way = Callable[..., Awaitable[Outcome]]


async def outcome(way: Way, lengths: list[int], places: int) -> tuple[Outcome, StepEngine]:
    engine = StepEngine(places)
    work = [Generation((1,), length) for length in lengths]
    working = asyncio.create_task(engine.work())
    try:
        return await asyncio.wait_for(way(engine.follow, work, places), 10), engine
    finally:
        working.cancel()


async def test_a_static_group_waits_for_its_longest_answer() -> None:
    found, engine = await outcome(run_static, [4, 8, 8, 2], places=2)
    assert found.ends == (4, 8, 16, 10)
    assert engine.most_running == 2


async def test_continuous_batching_fills_a_place_at_once() -> None:
    found, engine = await outcome(run_continuous, [4, 8, 8, 2], places=2)
    assert found.makespan == 12
    assert engine.most_running == 2


async def test_equal_lengths_take_equally_long_either_way() -> None:
    static, _ = await outcome(run_static, [5, 5, 5, 5], places=2)
    continuous, _ = await outcome(run_continuous, [5, 5, 5, 5], places=2)
    assert static.makespan == continuous.makespan == 10


async def test_a_last_group_may_be_smaller() -> None:
    found, _ = await outcome(run_static, [3, 3, 3], places=2)
    assert found.ends == (3, 3, 6)


def test_the_lengths_are_the_same_each_time_and_the_prompts_are_not() -> None:
    prompts = Prompts(FakeTokenizer())
    first, second = mixed(prompts, 24, 256), mixed(prompts, 24, 256)
    assert [len(one.prompt) for one in first] == [len(one.prompt) for one in second]
    assert [one.num_tokens for one in first] == [one.num_tokens for one in second]
    assert first[0].prompt != second[0].prompt
    assert all(20 <= len(one.prompt) <= 600 and 16 <= one.num_tokens <= 256 for one in first)


def test_an_outcome_counts_all_tokens_over_the_longest_time() -> None:
    found = outcome_of([Stream((1.0, 2.0), 1.0), Stream((1.0, 2.0, 4.0), 1.0)])
    assert found.makespan == 4.0
    assert found.rate == pytest.approx(5 / 4)
