"""The scheduler: who is computed when, and that everybody ends whatever happens."""

import random

import pytest

from engine.backends.base import StepFailure
from engine.kv.seats import Seats
from engine.kv.segment import Belonging
from engine.request import FinishReason, Request, RequestOptions
from engine.sampling_params import SamplingParams
from engine.scheduler import MIN_PIECE_TOKENS, Scheduler
from tests.engine.run import GREEDY, EngineRun
from tests.fakes import FakeMemory, fake_config
from tests.fakes_disk import FakeDisk


def scheduler(*, cells: int = 1024, running: int = 4, batch: int = 64) -> Scheduler:
    return Scheduler(Seats(FakeMemory(cells, 8)), max_running=running, max_batch_tokens=batch)


def submitted(run: EngineRun, seed: int, length: int, **changes: object) -> int:
    return run.submit(random.Random(seed).choices(range(256), k=length), **changes)


def test_nobody_runs_at_first() -> None:
    queue = scheduler()
    assert not queue.has_work
    queue.add(Request([1], SamplingParams()))
    assert queue.has_work
    assert (queue.num_running, queue.num_waiting) == (0, 1)


def test_a_long_prompt_is_read_in_pieces_no_larger_than_the_batch() -> None:
    run = EngineRun(fake_config(cells=1024, batch=48))
    submitted(run, 1, 500)
    run.finish()
    sizes = [sum(count for _, count, _ in batch) for batch in run.runner.batches]
    assert max(sizes) <= 48


def test_who_writes_gets_a_token_in_every_step_while_a_long_prompt_is_read() -> None:
    run = EngineRun(fake_config(cells=1024, batch=64))
    writer = submitted(run, 1, 10, max_tokens=100)
    run.step()
    submitted(run, 2, 600)
    while run.engine.has_work and writer in run.open:
        before = len(run.tokens[writer])
        run.step()
        assert len(run.tokens[writer]) == before + 1


def test_a_slow_model_reads_smaller_pieces_beside_a_writer() -> None:
    queue = scheduler(batch=512)
    writing = Request([1, 2], SamplingParams())
    queue.add(writing)
    queue.schedule()
    writing.num_computed_tokens = 2
    writing.token_ids.append(3)
    reading = Request(list(range(900)), SamplingParams())
    queue.add(reading)
    for _ in range(12):
        queue.learn_speed(512, 20.0)
    slow = queue.schedule()
    assert [item.num_scheduled_tokens for item in slow.scheduled] == [1, MIN_PIECE_TOKENS]


def test_a_fast_model_fills_the_batch() -> None:
    queue = scheduler(batch=512)
    for _ in range(12):
        queue.learn_speed(512, 0.01)
    queue.add(Request([5] * 900, SamplingParams()))
    assert queue.schedule().num_tokens == 512


def test_the_oldest_prompt_gets_half_and_the_shortest_the_rest() -> None:
    queue = scheduler(batch=64)
    lengths = {length: Request([length] * length, SamplingParams()) for length in (300, 200, 20)}
    for request in lengths.values():
        queue.add(request)
    shares = {
        item.request.num_tokens: item.num_scheduled_tokens for item in queue.schedule().scheduled
    }
    assert shares == {300: 32, 20: 20, 200: 12}


def test_a_finished_request_leaves_at_once_and_a_waiting_one_takes_its_place() -> None:
    run = EngineRun(fake_config(running=1))
    first = submitted(run, 1, 10, max_tokens=2)
    second = submitted(run, 2, 10, max_tokens=2)
    run.finish()
    assert run.num_steps == 4
    assert run.ended == [first, second]


def test_requests_of_equal_length_end_in_the_order_they_came() -> None:
    run = EngineRun(fake_config(running=2, cells=512))
    numbers = [submitted(run, seed, 30) for seed in range(9)]
    run.finish()
    assert run.ended == numbers


def test_the_oldest_ends_although_newcomers_never_stop_coming() -> None:
    run = EngineRun(fake_config(cells=512, running=4, batch=32))
    oldest = submitted(run, 1, 400, max_tokens=60)
    for step in range(300):
        if run.engine.num_waiting < 3:
            submitted(run, 100 + step, 12, max_tokens=30)
        run.step()
        if oldest in run.ended:
            break
    run.check_answer(oldest)
    assert not run.requests[oldest].num_preemptions


def test_a_prompt_longer_than_all_free_cells_waits_for_them() -> None:
    run = EngineRun(fake_config(cells=256, batch=64))
    first = submitted(run, 1, 100, max_tokens=20)
    run.step()
    long = submitted(run, 2, 250, max_tokens=4)
    run.step()
    assert (run.engine.num_running, run.engine.num_waiting) == (1, 1)
    run.finish()
    assert run.ended == [first, long]
    run.check_answer(long)


def test_nobody_is_admitted_after_a_preemption_until_somebody_has_left() -> None:
    run = EngineRun(fake_config(cells=256, running=4, batch=64))
    numbers = [submitted(run, seed, 55, max_tokens=40) for seed in range(4)]
    while not any(run.requests[n].num_preemptions for n in numbers):
        run.step()
    while not run.ended:
        running = run.engine.num_running
        run.step()
        assert run.engine.num_running <= running
    run.finish()
    for number in numbers:
        run.check_answer(number)


OWNERS = ("", "a", "b", "c")


def any_options(choose: random.Random) -> RequestOptions:
    return RequestOptions(
        belonging=Belonging(owner=choose.choice(OWNERS), is_durable=choose.random() < 0.5),
        is_background=choose.random() < 0.1,
        is_preparation=choose.random() < 0.1,
        is_reproducible=choose.random() < 0.1,
    )


@pytest.mark.parametrize("can_cut", [True, False], ids=["fork", "no-fork"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_every_answer_is_the_one_given_alone(seed: int, can_cut: bool) -> None:
    """Chats that continue, branch, repeat, give up and are deleted, some in the background and some
    alone, in too few cells and too little memory, over failing steps and a failing disk."""
    choose = random.Random(seed)
    run = EngineRun(
        fake_config(
            cells=choose.choice([256, 300, 512]),
            running=choose.choice([2, 4, 8]),
            sequences=8,
            batch=choose.choice([32, 64, 256]),
            ram=choose.choice([0, 20_000, 200_000]),
            disk=choose.choice([10_000, 1_000_000]),
        ),
        can_cut=can_cut,
    )
    disk = FakeDisk()
    run.engine.attach_disk(disk, [])
    chats = [choose.choices(range(256), k=choose.randrange(10, 60)) for _ in range(3)]
    for _ in range(2000):
        if len(run.open) < 10 and choose.random() < 0.3:
            chat = choose.choice(chats)
            length = choose.choice([len(chat), len(chat), choose.randrange(len(chat) + 1)])
            prompt = chat[:length] + choose.choices(range(256), k=choose.choice([0, 1, 5, 80]))
            prompt = prompt[: run.memory.num_cells - 1] or [1]
            number = run.submit(
                prompt,
                GREEDY,
                temperature=choose.choice([0.0, 0.0, 1.0]),
                options=any_options(choose),
                seed=choose.randrange(100),
                max_tokens=choose.choice([1, 2, 10, 60]),
                ignore_eos=choose.random() < 0.5,
            )
            chats = [*chats[-5:], prompt]
        if run.open and choose.random() < 0.03:
            run.abort(choose.choice(run.open))
        if choose.random() < 0.05:
            run.runner.failures[run.runner.num_steps] = choose.choice(
                [0, 1, 5, 30, StepFailure.ABORTED, StepFailure.NO_ROOM]
            )
        if choose.random() < 0.005:
            run.runner.failures[run.runner.num_steps] = StepFailure.BROKEN
        if choose.random() < 0.01:
            run.engine.forget(choose.choice(OWNERS[1:]))
        if choose.random() < 0.3:
            run.engine.maintain()
            run.engine.check()
        if disk.files and choose.random() < 0.02:
            disk.damage(choose.choice(sorted(disk.files)))
        if run.engine.has_work:
            run.step()
        for number in run.ended[-2:]:
            if run.last.get(number) and run.last[number].finish_reason is FinishReason.STOP:
                chats.append(run.prompts[number] + run.tokens[number])
    run.finish()
    assert len(run.ended) > 100
    if run.engine.kv_usage().ram_budget:
        assert sum(run.requests[number].num_restored_tokens for number in run.ended) > 500
    for number in run.ended:
        run.check_answer(number)
