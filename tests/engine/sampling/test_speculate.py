"""Guessing changes how fast an answer comes, and nothing else."""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from engine.backends.base import StepFailure
from engine.request import FinishReason, RequestOptions
from engine.sampling.lookup import PromptLookup
from engine.sampling.speculate import INDEX_TOKENS, HitRate
from tests.engine.run import EngineRun
from tests.fakes import EvenCosts, fake_config, logits_after

CHI_SQUARE_99_9 = {7: 24.3, 15: 37.7}


def guessing(looks_back: int | None = 2, cells: int = 1024) -> EngineRun:
    return EngineRun(fake_config(cells=cells), looks_back=looks_back, costs=EvenCosts())


def prompt(seed: int, length: int = 30) -> list[int]:
    return random.Random(seed).choices(range(200), k=length)


def num_steps(run: EngineRun, number: int) -> int:
    return sum(any(each[0] == number for each in batch) for batch in run.runner.batches)


def test_an_answer_that_repeats_itself_comes_in_fewer_steps() -> None:
    run = guessing(looks_back=1)
    number = run.submit(prompt(1), max_tokens=300)
    run.finish()
    run.check_answer(number)
    timings = run.timings(number)
    assert timings.accepted_tokens > 200
    assert timings.drafted_tokens >= timings.accepted_tokens
    assert num_steps(run, number) <= 300 - timings.accepted_tokens + 1


def test_wrong_guesses_leave_no_trace() -> None:
    last = [5, 6, 7]
    first = int(logits_after(last, 3).argmax())
    # What the model says first was said before, and then came what it does not say now.
    said = [*last, first, 250, 251, 252, 253, 254, *last]
    run = guessing(looks_back=3)
    number = run.submit(said, max_tokens=40)
    run.finish()
    run.check_answer(number)
    assert run.timings(number).drafted_tokens > run.timings(number).accepted_tokens


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_what_is_sampled_is_what_would_be_sampled_without_guesses(temperature: float) -> None:
    for seed in range(10):
        run = guessing()
        number = run.submit(
            prompt(seed), max_tokens=60, temperature=temperature, top_k=3, seed=seed
        )
        run.finish()
        run.check_answer(number)


def test_a_reproducible_answer_is_never_guessed() -> None:
    run = guessing()
    number = run.submit(prompt(1), options=RequestOptions(is_reproducible=True), max_tokens=200)
    run.finish()
    run.check_answer(number)
    assert run.timings(number).drafted_tokens == 0


def test_a_recurrent_model_is_never_guessed() -> None:
    run = EngineRun(fake_config(cells=1024), looks_back=2, can_cut=False, costs=EvenCosts())
    number = run.submit(prompt(1), max_tokens=200)
    run.finish()
    run.check_answer(number)
    assert run.timings(number).drafted_tokens == 0


def test_a_guess_goes_neither_beyond_the_limit_nor_beyond_the_context() -> None:
    for max_tokens in range(1, 40):
        run = guessing()
        number = run.submit([*prompt(1, 6)] * 3, max_tokens=max_tokens)
        run.finish()
        run.check_answer(number)
    run = EngineRun(fake_config(cells=256), max_request_tokens=100, looks_back=2, costs=EvenCosts())
    number = run.submit(prompt(1, 40), max_tokens=1000)
    run.finish()
    run.check_answer(number)
    assert run.last[number].finish_reason is FinishReason.LENGTH


def test_a_stop_text_inside_a_right_guess_ends_the_answer_there() -> None:
    run = guessing()
    whole = run.submit(prompt(1), max_tokens=300)
    run.finish()
    text = run.texts[whole]
    stop = text[200:203]
    number = run.submit(prompt(1), max_tokens=300, stop=(stop,))
    run.finish()
    assert run.texts[number] == text[: text.index(stop)]


def test_a_long_prompt_is_taken_in_a_piece_at_each_step() -> None:
    run = guessing(looks_back=1, cells=8192)
    taken: list[int] = []
    extend = PromptLookup.extend

    def watched(self: PromptLookup, token_ids: Sequence[int]) -> None:
        taken.append(len(token_ids))
        extend(self, token_ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PromptLookup, "extend", watched)
        first = run.submit(prompt(1, 5000), max_tokens=100)
        run.finish()
        # Now all of it is held, and is taken in while the answer is written.
        again = run.submit(prompt(1, 5000), max_tokens=100)
        run.finish()
    assert max(taken) <= INDEX_TOKENS
    for number in (first, again):
        run.check_answer(number)
        assert run.timings(number).accepted_tokens > 30


def test_guesses_that_came_true_count_for_those_who_come_later() -> None:
    of_all = HitRate()
    one = HitRate(of_all)
    for _ in range(50):
        one.count(True)
    assert HitRate(of_all).share > 0.8
    assert HitRate().share < 0.5


def test_few_trials_are_counted_on_less_than_many() -> None:
    few, many = HitRate(), HitRate()
    for rate, num in ((few, 3), (many, 300)):
        for index in range(num):
            rate.count(index % 3 > 0)
    assert few.share < many.share < 2 / 3


def test_what_was_guessed_right_is_held_for_the_next_turn() -> None:
    run = guessing()
    first = run.submit(prompt(1), max_tokens=200)
    run.finish()
    more = run.submit([*prompt(1), *run.tokens[first], 1, 2, 3])
    run.finish()
    run.check_answer(more)
    assert run.cached_tokens(more) >= 30 + 199


@pytest.mark.parametrize("seed", range(12))
def test_any_history_of_guesses_failures_and_cancels_gives_the_same_answers(seed: int) -> None:
    random_ = random.Random(seed)
    run = EngineRun(
        fake_config(cells=random_.choice([256, 400, 1000])),
        looks_back=random_.choice([1, 2, None]),
        costs=EvenCosts(),
    )
    said = prompt(seed, 12)
    for step in range(400):
        if random_.random() < 0.08 and len(run.open) < 6:
            start = random_.randrange(12)
            run.submit(
                [*said[start:], *prompt(random_.randrange(4), random_.randrange(1, 40))],
                max_tokens=random_.randrange(1, 60),
            )
        if run.open and random_.random() < 0.02:
            run.abort(random_.choice(run.open))
        if random_.random() < 0.05:
            run.runner.failures[run.runner.num_steps] = random_.choice(
                [StepFailure.ABORTED, StepFailure.NO_ROOM, StepFailure.BROKEN, 0, 1, 3, 9]
            )
        if run.engine.has_work:
            run.step()
        if step % 40 == 0:
            run.rest()
    run.runner.failures.clear()
    run.finish()
    for number in run.ended:
        run.check_answer(number)


def test_sampled_text_keeps_the_distribution() -> None:
    """Chi-square over the third token, which follows a guess that is sometimes right."""
    run = EngineRun(
        fake_config(cells=1024, running=8, sequences=8), looks_back=1, costs=EvenCosts()
    )
    # The first token of the answer has two candidates, and both were said before: one with what
    # is likely to follow it, one with what is not.
    likely, unlikely = _best_two(9)
    beginning = [7, 8, 9, likely, _best_two(likely)[0], 7, 8, 9, unlikely, 250, 251, 7, 8, 9]
    counts: Counter[tuple[int, ...]] = Counter()
    numbers = []
    for seed in range(3000):
        numbers.append(
            run.submit(
                beginning, max_tokens=3, temperature=2.0, top_k=2, top_p=1.0, min_p=0.0, seed=seed
            )
        )
        if seed % 8 == 7:
            run.finish()
    for number in numbers:
        counts[tuple(run.tokens[number])] += 1
    expected = _distribution(beginning, 3, temperature=2.0)
    assert set(counts) <= set(expected)
    statistic = sum(
        (counts[way] - 3000 * share) ** 2 / (3000 * share) for way, share in expected.items()
    )
    assert statistic < CHI_SQUARE_99_9[len(expected) - 1]
    assert sum(run.timings(number).drafted_tokens for number in numbers) > 0


def _best_two(last: int) -> tuple[int, int]:
    best = np.argsort(-logits_after([last], 1), kind="stable")
    return int(best[0]), int(best[1])


def _distribution(
    beginning: Sequence[int], length: int, temperature: float
) -> dict[tuple[int, ...], float]:
    """Of all answers of this length, with the two best tokens at each place."""
    ways: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for way, share in ways.items():
            best = _best_two([*beginning, *way][-1])
            row = logits_after([*beginning, *way], 1).astype(np.float64)[list(best)]
            weights = np.exp((row - row[0]) / temperature)
            for token_id, weight in zip(best, weights / weights.sum(), strict=True):
                longer[(*way, int(token_id))] = share * float(weight)
        ways = longer
    return ways
