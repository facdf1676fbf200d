"""The engine: every answer is the one the model gives alone, whatever happens around it."""

import random

import pytest

from engine.backends.base import StepFailure
from engine.request import FinishReason
from tests.engine.run import EngineRun
from tests.fakes import END, fake_config

LONG = list(range(100, 200))


def prompt(seed: int, length: int) -> list[int]:
    return random.Random(seed).choices(range(END), k=length)


def test_a_prompt_is_answered_as_alone() -> None:
    run = EngineRun()
    number = run.submit(prompt(1, 50), max_tokens=20)
    run.finish()
    run.check_answer(number)
    assert len(run.tokens[number]) == 20
    assert run.last[number].finish_reason is FinishReason.LENGTH
    assert run.last[number].notice == ""


def test_the_end_token_ends_the_answer_and_is_not_part_of_it() -> None:
    run = EngineRun()
    numbers = [run.submit(prompt(i, 9), max_tokens=200, ignore_eos=False) for i in range(20)]
    run.finish()
    ended = [n for n in numbers if run.last[n].finish_reason is FinishReason.STOP]
    assert ended
    for number in numbers:
        run.check_answer(number)
        assert END not in run.tokens[number]


def test_a_full_context_ends_with_length_and_says_so() -> None:
    run = EngineRun(fake_config(cells=256))
    number = run.submit(prompt(1, 250), max_tokens=1000)
    run.finish()
    run.check_answer(number)
    assert len(run.tokens[number]) == 6
    assert run.last[number].finish_reason is FinishReason.LENGTH
    assert "256 tokens is full" in run.last[number].notice


def test_the_longest_prompt_that_fits_gets_one_token() -> None:
    run = EngineRun(fake_config(cells=256))
    number = run.submit(prompt(1, 255), max_tokens=1000)
    run.finish()
    run.check_answer(number)
    assert len(run.tokens[number]) == 1


def test_a_prompt_that_is_held_to_the_last_token_computes_one() -> None:
    run = EngineRun()
    first = run.submit(LONG)
    run.finish()
    again = run.submit(LONG)
    run.finish()
    assert run.tokens[again] == run.tokens[first]
    assert run.cached_tokens(again) == len(LONG) - 1
    timings = run.last[again].timings
    assert timings is not None and timings.prefilled_tokens == 1


def test_a_prompt_that_continues_an_answer_computes_what_is_new() -> None:
    run = EngineRun()
    first = run.submit(LONG, max_tokens=5)
    run.finish()
    more = run.submit([*LONG, *run.tokens[first], 1, 2, 3])
    run.finish()
    run.check_answer(more)
    # The last token of an answer is never computed.
    assert run.cached_tokens(more) == len(LONG) + 4


def test_two_equal_prompts_at_once_share_what_the_first_has_read() -> None:
    run = EngineRun(fake_config(batch=64))
    first = run.submit(LONG)
    run.step()
    run.step()
    second = run.submit(LONG)
    run.finish()
    run.check_answer(first)
    run.check_answer(second)
    assert run.cached_tokens(second) > 0


def test_a_fork_never_truncates_its_sibling() -> None:
    run = EngineRun()
    start = prompt(1, 60)
    left = run.submit([*start, 1, 2, 3], max_tokens=6)
    run.finish()
    right = run.submit([*start, 9, 9, 9], max_tokens=6)
    run.finish()
    assert run.cached_tokens(right) == 60
    back = run.submit([*start, 1, 2, 3, *run.tokens[left], 7], max_tokens=6)
    run.finish()
    assert run.cached_tokens(back) == 60 + 3 + 5
    for number in (left, right, back):
        run.check_answer(number)


def test_a_memory_that_cannot_fork_still_continues_and_is_right() -> None:
    run = EngineRun(can_cut=False)
    first = run.submit(LONG)
    run.finish()
    again = run.submit(LONG)
    run.finish()
    assert run.cached_tokens(again) == 0
    more = run.submit([*LONG, *run.tokens[first], 5])
    run.finish()
    assert run.cached_tokens(more) == len(LONG) + 7
    for number in (first, again, more):
        run.check_answer(number)


def test_more_requests_than_seats_are_all_answered() -> None:
    run = EngineRun(fake_config(running=3, sequences=3, cells=512))
    numbers = [run.submit(prompt(i, 20 + i)) for i in range(12)]
    run.step()
    assert run.engine.num_running == 3
    assert run.engine.num_waiting == 9
    run.finish()
    for number in numbers:
        run.check_answer(number)


def test_a_short_request_joins_while_a_long_prompt_is_read_and_ends_before_it() -> None:
    run = EngineRun(fake_config(cells=1024, batch=32))
    long = run.submit(prompt(1, 900))
    run.step()
    short = run.submit(prompt(2, 10), max_tokens=4)
    run.finish()
    assert run.ended == [short, long]
    run.check_answer(long)
    run.check_answer(short)


def test_progress_of_reading_is_told_and_grows() -> None:
    run = EngineRun(fake_config(cells=1024, batch=32))
    number = run.submit(prompt(1, 300))
    seen = []
    while not run.tokens[number]:
        run.step()
        seen.append(run.last[number].num_prompt_tokens_read)
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == 300


def test_who_is_preempted_goes_on_where_it_was_and_counts_its_cache_once() -> None:
    run = EngineRun(fake_config(cells=256, running=4, batch=64))
    numbers = [run.submit(prompt(i, 50), max_tokens=60) for i in range(4)]
    preempted = set()
    while run.engine.has_work:
        run.step()
        preempted |= {n for n in run.open if run.requests[n].num_preemptions}
        assert run.num_steps < 1000
    assert preempted
    for number in numbers:
        run.check_answer(number)
        assert run.cached_tokens(number) == 0


def test_a_prompt_preempted_while_it_is_read_does_not_count_its_own_tokens_as_cached() -> None:
    run = EngineRun(fake_config(cells=512, running=4, batch=32))
    number = run.submit(prompt(1, 400))
    for _ in range(5):
        run.step()
    run.engine._scheduler.preempt(run.requests[number])
    run.finish()
    run.check_answer(number)
    assert run.cached_tokens(number) == 0


def test_a_preempted_prompt_is_not_seated_again_before_the_older_one_has_its_cells() -> None:
    """The younger one needs 2 tokens and would fit again at once; the older one needs 126."""
    run = EngineRun(fake_config(cells=1120, running=4, batch=128))
    older = run.submit(prompt(1, 900), max_tokens=4)
    run.step()
    younger = run.submit(prompt(2, 450), max_tokens=4)
    run.finish(limit=200)
    assert run.ended == [older, younger]
    run.check_answer(older)
    run.check_answer(younger)


@pytest.mark.parametrize("batch", [32, 128, 512])
def test_long_prompts_that_do_not_fit_together_are_read_one_after_the_other(batch: int) -> None:
    run = EngineRun(fake_config(cells=512, running=4, batch=batch))
    first = run.submit(prompt(1, 400), max_tokens=4)
    run.step()
    second = run.submit(prompt(2, 300), max_tokens=4)
    third = run.submit(prompt(3, 250), max_tokens=4)
    run.finish(limit=200)
    assert run.ended == [first, second, third]
    for number in run.ended:
        run.check_answer(number)


@pytest.mark.parametrize("num_steps", [0, 1, 3, 12])
def test_a_request_can_be_aborted_in_every_phase(num_steps: int) -> None:
    run = EngineRun(fake_config(batch=32))
    others = [run.submit(prompt(i, 40), max_tokens=20) for i in range(2)]
    number = run.submit(prompt(7, 90), max_tokens=20)
    for _ in range(num_steps):
        run.step()
    run.abort(number)
    assert run.last[number].finish_reason is FinishReason.ABORT
    assert number in run.ended
    run.abort(number)
    run.finish()
    for each in (*others, number):
        run.check_answer(each)


def test_an_abort_on_the_last_token_changes_nothing() -> None:
    run = EngineRun()
    number = run.submit(LONG, max_tokens=3)
    while len(run.tokens[number]) < 2:
        run.step()
    run.abort(number)
    run.abort(number)
    assert len(run.tokens[number]) == 2
    again = run.submit(LONG, max_tokens=3)
    run.finish()
    run.check_answer(again)


def test_what_an_aborted_request_has_read_is_not_read_again() -> None:
    run = EngineRun(fake_config(cells=1024, batch=32))
    number = run.submit(prompt(1, 500))
    for _ in range(10):
        run.step()
    read = run.requests[number].num_computed_tokens
    assert 0 < read < 500
    run.abort(number)
    again = run.submit(prompt(1, 500))
    run.finish()
    run.check_answer(again)
    assert run.cached_tokens(again) == read


def test_a_waiting_request_that_is_aborted_tells_how_long_it_waited() -> None:
    run = EngineRun(fake_config(running=1))
    run.submit(prompt(1, 40))
    waiting = run.submit(prompt(2, 40))
    run.step()
    run.abort(waiting)
    timings = run.last[waiting].timings
    assert timings is not None
    assert timings.queue_ms > 0
    assert timings.prompt_tokens == 0


@pytest.mark.parametrize("can_cut", [True, False])
@pytest.mark.parametrize("computed", [0, 1, 7, 31, 32])
def test_an_aborted_step_loses_nothing_but_time(computed: int, can_cut: bool) -> None:
    run = EngineRun(fake_config(batch=32), can_cut=can_cut)
    for step in range(0, 40, 3):
        run.runner.failures[step] = computed
    numbers = [run.submit(prompt(i, 30 + 20 * i), max_tokens=12) for i in range(3)]
    run.finish(limit=400)
    for number in numbers:
        run.check_answer(number)


def test_cells_that_run_out_early_cost_no_answer() -> None:
    run = EngineRun(fake_config(cells=512, running=4, batch=64))
    run.memory.num_real_cells = 200
    numbers = [run.submit(prompt(i, 60), max_tokens=30) for i in range(5)]
    run.finish()
    assert not run.errors
    for number in numbers:
        run.check_answer(number)


def test_a_request_larger_than_the_real_memory_fails_alone() -> None:
    run = EngineRun(fake_config(cells=512, running=4, batch=64))
    run.memory.num_real_cells = 200
    small = run.submit(prompt(1, 60), max_tokens=30)
    large = run.submit(prompt(2, 300), max_tokens=30)
    last = run.submit(prompt(3, 60), max_tokens=30)
    run.finish()
    assert list(run.errors) == [large]
    run.check_answer(small)
    run.check_answer(last)


@pytest.mark.parametrize("num_failures", [1, 2])
def test_a_state_lost_as_the_cells_ran_out_is_read_again_once(num_failures: int) -> None:
    run = EngineRun(can_cut=False)
    lost = run.submit(range(20))
    run.step()
    run.step()
    for index in range(num_failures):
        run.runner.failures[run.runner.num_steps + index] = StepFailure.NO_ROOM
    run.finish()
    assert (lost in run.errors) == (num_failures == 2)
    run.check_answer(lost)
    number = run.submit(range(20))
    run.finish()
    run.check_answer(number)


def test_a_broken_step_is_computed_once_more_and_nobody_notices() -> None:
    run = EngineRun(fake_config(running=2))
    run.runner.failures[6] = StepFailure.BROKEN
    numbers = [run.submit(prompt(i, 40), max_tokens=12) for i in range(4)]
    run.finish()
    assert not run.errors
    assert run.memory.num_clears == 1
    for number in numbers:
        run.check_answer(number)


def test_a_request_that_breaks_two_steps_ends_and_the_others_go_on() -> None:
    run = EngineRun(fake_config(running=2))
    run.runner.failures |= {6: StepFailure.BROKEN, 9: StepFailure.BROKEN}
    numbers = [run.submit(prompt(i, 40), max_tokens=12) for i in range(4)]
    run.finish()
    assert set(run.errors) == set(numbers[:2])
    assert run.memory.num_clears == 2
    for number in numbers[2:]:
        run.check_answer(number)
    again = run.submit(run.prompts[numbers[0]], max_tokens=12)
    run.finish()
    run.check_answer(again)


def test_a_row_without_numbers_ends_its_own_request_only() -> None:
    run = EngineRun(fake_config(running=3))
    numbers = [run.submit(prompt(i, 40), max_tokens=12) for i in range(3)]
    sick = numbers[1]
    run.runner.has_nan = lambda prefix: (
        prefix[:40] == run.prompts[sick] and len(prefix) == 45 and not run.errors
    )
    run.finish()
    assert list(run.errors) == [sick]
    assert "no usable number" in str(run.errors[sick])
    run.check_answer(numbers[0])
    run.check_answer(numbers[2])


def test_after_a_row_without_numbers_the_same_message_works_again() -> None:
    """The damaged cells must not be continued, nor given to somebody else."""
    run = EngineRun(fake_config(running=3))
    other = run.submit(prompt(5, 40), max_tokens=30)
    sick = run.submit(LONG)
    run.runner.has_nan = lambda prefix: prefix[:50] == LONG[:50] and not run.errors
    run.finish()
    assert list(run.errors) == [sick]
    again = run.submit(LONG)
    run.finish()
    assert list(run.errors) == [sick]
    for number in (other, again):
        run.check_answer(number)
