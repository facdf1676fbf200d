"""Several answers to one prompt: read once, written together, and none of them hangs."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.api.answers import Answers
from engine.async_engine import AsyncEngine, OutputStream
from engine.engine import Engine
from engine.errors import EngineError, PromptTooLong
from engine.request import FinishReason, RequestOutput
from engine.sampling_params import SamplingParams, for_answer
from tests.fakes import FakeBackend, answer_alone, fake_config

PROMPT = list(range(90))
PARAMS = SamplingParams(seed=3, max_tokens=12, ignore_eos=True, temperature=1.5)


class Room:
    """An engine on its thread over a fake backend."""

    def __init__(self, *, can_cut: bool = True) -> None:
        config = fake_config(cells=1024, running=4, sequences=6, batch=32)
        self.backend = FakeBackend(config, can_cut=can_cut)
        self.engine = AsyncEngine(Engine(self.backend, config), self.backend.max_request_tokens)

    def answers(self, num: int, params: SamplingParams = PARAMS) -> Answers:
        return Answers(lambda each: self.engine.submit(PROMPT, each), params, num)


@pytest.fixture
def room() -> Iterator[Room]:
    opened = Room()
    yield opened
    opened.backend.model_runner.let_go()
    opened.engine.close()


async def read(answers: Answers) -> dict[int, list[RequestOutput]]:
    found: dict[int, list[RequestOutput]] = {}
    async with asyncio.timeout(20):
        with answers:
            async for number, output in answers:
                found.setdefault(number, []).append(output)
    return found


def tokens_of(outputs: list[RequestOutput]) -> list[int]:
    return [token for output in outputs for token in output.token_ids]


@pytest.mark.parametrize("num", [1, 2, 7])
async def test_each_is_the_answer_of_its_own_seed_and_the_prompt_is_read_once(
    room: Room, num: int
) -> None:
    found = await read(room.answers(num))
    assert sorted(found) == list(range(num))
    for number, outputs in found.items():
        params = replace(PARAMS, seed=3 + number)
        assert tokens_of(outputs) == answer_alone(PROMPT, params, 1024)
        timings = outputs[-1].timings
        assert timings is not None
        # One token is always computed, for its logits.
        assert timings.cached_tokens == (0 if number == 0 else len(PROMPT) - 1)


async def test_where_kv_cannot_be_shared_a_stored_state_is() -> None:
    """A recurrent model: its state before the last token of the prompt was kept."""
    room = Room(can_cut=False)
    found = await read(room.answers(3))
    room.engine.close()
    for number, outputs in found.items():
        params = replace(PARAMS, seed=3 + number)
        assert tokens_of(outputs) == answer_alone(PROMPT, params, 1024)
        timings = outputs[-1].timings
        assert timings is not None
        assert timings.restored_tokens == (0 if number == 0 else len(PROMPT) - 1)


async def test_without_a_seed_they_differ(room: Room) -> None:
    found = await read(room.answers(3, replace(PARAMS, seed=None, temperature=3.0)))
    assert len({tuple(tokens_of(outputs)) for outputs in found.values()}) == 3


async def test_an_answer_that_ends_with_its_first_token_does_not_stop_the_others(
    room: Room,
) -> None:
    found = await read(room.answers(3, replace(PARAMS, max_tokens=1)))
    assert [len(tokens_of(outputs)) for outputs in found.values()] == [1, 1, 1]


async def test_what_cannot_be_asked_is_said_before_anything_is_written(room: Room) -> None:
    with pytest.raises(PromptTooLong):
        Answers(lambda each: room.engine.submit([1] * 5000, each), PARAMS, 2)


async def test_leaving_early_ends_all_of_them(room: Room) -> None:
    streams: list[OutputStream] = []

    def submit(params: SamplingParams) -> OutputStream:
        streams.append(room.engine.submit(PROMPT, params))
        return streams[-1]

    seen: set[int] = set()
    async with asyncio.timeout(20):
        with Answers(submit, replace(PARAMS, max_tokens=900), 3) as answers:
            async for number, _ in answers:
                seen.add(number)
                if len(seen) == 3:
                    break
        # What nobody has read of them yet, with how they ended.
        left = [[output async for output in stream] for stream in streams]
    assert [outputs[-1].finish_reason for outputs in left] == [FinishReason.ABORT] * 3


async def test_an_abort_while_the_prompt_is_read_asks_for_no_others(room: Room) -> None:
    room.backend.model_runner.hold()
    answers = room.answers(3)
    await asyncio.sleep(0)
    answers.abort()
    room.backend.model_runner.let_go()
    found = await read(answers)
    assert list(found) == [0]
    assert found[0][-1].finish_reason is FinishReason.ABORT


async def test_the_failure_of_one_is_the_failure_of_the_request(room: Room) -> None:
    room.backend.model_runner.has_nan = lambda prefix: len(prefix) == len(PROMPT) + 3
    with pytest.raises(EngineError):
        await read(room.answers(2))
    assert room.engine.is_alive


def test_seeds_go_up_and_come_round() -> None:
    assert for_answer(PARAMS, 0) == PARAMS
    assert for_answer(replace(PARAMS, seed=2**64 - 1), 2).seed == 1
    assert for_answer(replace(PARAMS, seed=None), 2).seed is None
