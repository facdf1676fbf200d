"""The engine's thread: no stream hangs, whatever dies, closes, is aborted or never read."""

import asyncio
import gc
import random
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from engine.async_engine import AsyncEngine, OutputStream
from engine.backends.base import StepFailure
from engine.engine import Engine
from engine.errors import EngineDead, EngineError, InvalidParams, PromptTooLong, UsageError
from engine.request import FinishReason, RequestOutput
from tests.engine.run import GREEDY
from tests.fakes import NUM_TOKENS, FakeBackend, answer_alone, fake_config
from tests.waiting import until

LIMIT = 20.0
PROMPT = list(range(40))
ENDLESS = replace(GREEDY, max_tokens=100_000)


class Room:
    """An engine on its thread over a fake backend."""

    def __init__(self) -> None:
        config = fake_config(cells=1024, running=4, sequences=6, batch=64)
        self.backend = FakeBackend(config)
        self.runner = self.backend.model_runner
        self.engine = AsyncEngine(Engine(self.backend, config), self.backend.max_request_tokens)

    def close(self) -> None:
        self.runner.let_go()
        self.engine.close()


@pytest.fixture
def room() -> Iterator[Room]:
    opened = Room()
    yield opened
    opened.close()
    assert opened.backend.is_closed


async def read(stream: OutputStream) -> list[RequestOutput]:
    """All of a stream; a stream that hangs fails the test."""
    async with asyncio.timeout(LIMIT):
        return [output async for output in stream]


@asynccontextmanager
async def told_of_death(*streams: OutputStream) -> AsyncIterator[None]:
    yield
    for stream in streams:
        with pytest.raises(EngineDead, match="restart the app"):
            await read(stream)


def tokens_of(outputs: list[RequestOutput]) -> list[int]:
    return [token for output in outputs for token in output.token_ids]


async def test_an_answer_comes_in_pieces_and_the_last_has_reason_and_timings(room: Room) -> None:
    outputs = await read(room.engine.submit(PROMPT, GREEDY))
    assert tokens_of(outputs) == answer_alone(PROMPT, GREEDY, 1024)
    assert [output.finish_reason for output in outputs[:-1]] == [None] * (len(outputs) - 1)
    assert outputs[-1].finish_reason is FinishReason.LENGTH
    assert outputs[-1].timings is not None


async def test_a_stream_that_is_over_stays_over(room: Room) -> None:
    stream = room.engine.submit(PROMPT, GREEDY)
    await read(stream)
    assert await read(stream) == []
    stream.abort()
    assert await read(stream) == []


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ([], UsageError),
        ([1] * 1024, PromptTooLong),
        ([1, NUM_TOKENS], UsageError),
        ([1, -1], UsageError),
    ],
    ids=["empty", "too long", "beyond the vocabulary", "negative"],
)
async def test_a_prompt_that_cannot_work_is_refused_in_the_caller(
    room: Room, prompt: list[int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        room.engine.submit(prompt, GREEDY)
    assert await read(room.engine.submit(PROMPT, GREEDY))


async def test_params_out_of_range_are_refused_in_the_caller() -> None:
    with pytest.raises(InvalidParams):
        replace(GREEDY, temperature=-1)


async def test_when_the_engine_dies_every_open_stream_is_told(room: Room) -> None:
    room.runner.hold()
    streams = [room.engine.submit([seed, *PROMPT], ENDLESS) for seed in range(7)]
    await until(room.runner.is_computing.is_set)
    room.runner.failures[1] = RuntimeError("a fault")
    room.runner.let_go()
    async with told_of_death(*streams):
        pass
    assert not room.engine.is_alive


async def test_whoever_asks_for_what_ends_the_engine_is_told(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(engine: Engine) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Engine, "forget_all", explode)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(EngineDead, match="restart the app"):
            await room.engine.forget_all()
    await until(lambda: not room.engine.is_alive)


async def test_all_kv_can_be_given_up_while_somebody_reads(room: Room) -> None:
    stream = room.engine.submit(list(range(200)), GREEDY)
    await room.engine.forget_all()
    assert tokens_of(await read(stream)) == answer_alone(
        list(range(200)), GREEDY, room.backend.max_request_tokens
    )


async def test_a_request_after_the_death_is_refused(room: Room) -> None:
    room.runner.failures[0] = RuntimeError("a fault")
    async with told_of_death(room.engine.submit(PROMPT, GREEDY)):
        pass
    with pytest.raises(EngineDead):
        room.engine.submit(PROMPT, GREEDY)


async def test_a_request_that_arrives_during_the_crash_is_refused_or_told() -> None:
    """The moment of the death is passed while requests come without a pause."""
    for _ in range(20):
        room = Room()
        room.runner.failures[3] = RuntimeError("a fault")
        streams = []
        refused = 0
        async with asyncio.timeout(LIMIT):
            while not refused:
                try:
                    streams.append(room.engine.submit(PROMPT, ENDLESS))
                except EngineDead:
                    refused += 1
                await asyncio.sleep(0)
        async with told_of_death(*streams):
            pass
        room.close()


async def test_closing_tells_the_open_streams(room: Room) -> None:
    running = room.engine.submit(PROMPT, ENDLESS)
    await anext(running)
    waiting = [room.engine.submit(PROMPT, ENDLESS) for _ in range(8)]
    await asyncio.to_thread(room.engine.close)
    async with told_of_death(running, *waiting):
        pass
    await asyncio.to_thread(room.engine.close)
    with pytest.raises(EngineDead):
        room.engine.submit(PROMPT, GREEDY)


async def test_closing_does_not_wait_for_a_long_step(room: Room) -> None:
    room.runner.hold()
    stream = room.engine.submit(PROMPT, ENDLESS)
    await until(room.runner.is_computing.is_set)
    async with asyncio.timeout(LIMIT), told_of_death(stream):
        await asyncio.to_thread(room.engine.close)


async def test_an_abort_while_waiting_ends_the_stream(room: Room) -> None:
    # Else the others are through with all cells before anybody looks.
    room.runner.seconds_a_step = 0.01
    running = [room.engine.submit([seed, *PROMPT], ENDLESS) for seed in range(4)]
    await anext(running[3])
    waiting = room.engine.submit(PROMPT, ENDLESS)
    await until(lambda: room.engine.num_waiting == 1)
    waiting.abort()
    outputs = await read(waiting)
    assert [output.finish_reason for output in outputs] == [FinishReason.ABORT]
    assert room.engine.num_running == 4


async def test_an_abort_in_the_middle_of_a_step_ends_the_step(room: Room) -> None:
    room.runner.hold()
    stream = room.engine.submit(PROMPT, ENDLESS)
    await until(room.runner.is_computing.is_set)
    stream.abort()
    outputs = await read(stream)
    assert outputs[-1].finish_reason is FinishReason.ABORT
    room.runner.let_go()
    assert tokens_of(await read(room.engine.submit(PROMPT, GREEDY)))


async def test_an_abort_while_writing_leaves_the_neighbour_its_answer(room: Room) -> None:
    neighbour = room.engine.submit(PROMPT, replace(GREEDY, max_tokens=200))
    for seed in range(30):
        with room.engine.submit([seed, *PROMPT], ENDLESS) as stream:
            async for output in stream:
                if output.token_ids:
                    break
    outputs = await read(neighbour)
    assert tokens_of(outputs) == answer_alone(PROMPT, replace(GREEDY, max_tokens=200), 1024)


async def test_an_abort_right_after_the_submit_ends_the_stream(room: Room) -> None:
    for seed in range(50):
        stream = room.engine.submit([seed, *PROMPT], ENDLESS)
        stream.abort()
        stream.abort()
        assert (await read(stream))[-1].finish_reason is FinishReason.ABORT
    await until(lambda: room.engine.num_running == 0)


async def test_a_cancelled_reader_frees_the_engine(room: Room) -> None:
    async def follow() -> None:
        with room.engine.submit(PROMPT, ENDLESS) as stream:
            async for _ in stream:
                pass

    reader = asyncio.create_task(follow())
    await until(lambda: room.engine.num_running == 1)
    reader.cancel()
    await until(lambda: room.engine.num_running == 0)


async def test_a_stream_that_is_never_read_does_not_slow_the_others(room: Room) -> None:
    silent = room.engine.submit(PROMPT, replace(GREEDY, max_tokens=900))
    outputs = await read(room.engine.submit(PROMPT, GREEDY))
    assert len(tokens_of(outputs)) == GREEDY.max_tokens
    del silent
    gc.collect()
    await until(lambda: room.engine.num_running == 0)


def test_the_request_of_a_closed_loop_is_ended(room: Room) -> None:
    async def leave() -> None:
        stream = room.engine.submit(PROMPT, replace(ENDLESS, max_tokens=900))
        await anext(stream)
        room.runner.hold()
        await until(room.runner.is_computing.is_set)

    asyncio.run(leave())
    steps = room.runner.num_steps
    room.runner.let_go()

    async def come_after() -> list[RequestOutput]:
        await until(lambda: room.engine.num_running == 0)
        return await read(room.engine.submit(PROMPT, GREEDY))

    assert tokens_of(asyncio.run(come_after()))
    assert room.runner.num_steps < steps + 100


async def test_two_broken_steps_fail_their_request_and_the_engine_lives(room: Room) -> None:
    room.runner.failures |= {0: StepFailure.BROKEN, 1: StepFailure.BROKEN}
    with pytest.raises(EngineError, match="send the message again"):
        await read(room.engine.submit(PROMPT, GREEDY))
    assert room.engine.is_alive
    assert tokens_of(await read(room.engine.submit(PROMPT, GREEDY)))


async def test_a_row_without_numbers_fails_its_request_only(room: Room) -> None:
    sick = [7, *PROMPT]
    room.runner.has_nan = lambda prefix: prefix[0] == 7 and len(prefix) > 44
    good = room.engine.submit(PROMPT, replace(GREEDY, max_tokens=60))
    with pytest.raises(EngineError, match="no usable number"):
        await read(room.engine.submit(sick, GREEDY))
    expected = answer_alone(PROMPT, replace(GREEDY, max_tokens=60), 1024)
    assert tokens_of(await read(good)) == expected


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_eight_threads_of_readers_all_get_their_end(room: Room, dies: bool) -> None:
    """Each with a loop of its own: read, abort, give up, leave unread. Then perhaps a death."""
    wrong: list[BaseException] = []
    num_dead = 0

    async def visit(choose: random.Random) -> None:
        nonlocal num_dead
        for _ in range(60):
            prompt = choose.choices(range(256), k=choose.randrange(1, 120))
            params = replace(GREEDY, max_tokens=choose.randrange(1, 12))
            try:
                stream = room.engine.submit(prompt, params)
                match choose.randrange(4):
                    case 0:
                        outputs = await read(stream)
                        assert tokens_of(outputs) == answer_alone(prompt, params, 1024)
                    case 1:
                        await asyncio.sleep(choose.random() * 0.005)
                        stream.abort()
                        assert (await read(stream))[-1].finish_reason is not None
                    case 2:
                        with stream:
                            await anext(stream)
                    case 3:
                        pass
            except EngineDead:
                num_dead += 1

    def follow(seed: int) -> None:
        try:
            asyncio.run(visit(random.Random(seed)))
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    if dies:
        room.runner.failures[150] = RuntimeError("a fault")
    threads = [threading.Thread(target=follow, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * LIMIT)
        assert not thread.is_alive()
    assert not wrong
    assert room.engine.is_alive is not dies
    assert bool(num_dead) is dies
