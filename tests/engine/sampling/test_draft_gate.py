"""The gate opens and closes as its figures say, with costs that the test makes up."""

import pytest

from engine.sampling.draft_gate import MIN_GAIN, StepCosts, best_length


def costs(**milliseconds: float) -> StepCosts:
    """`t4=20.0`: a step of 4 tokens takes 20 ms when there is nothing to look back at."""
    known = StepCosts()
    for name, value in milliseconds.items():
        known.learn(int(name[1:]), 0, value / 1e3)
    return known


def gain(acceptance: float, length: int, plain: float, drafted: float) -> float:
    return sum(acceptance**i for i in range(length + 1)) * plain / drafted


def test_nothing_is_guessed_while_the_costs_are_unknown() -> None:
    assert best_length(StepCosts(), 1.0, 8, 1, 100) == 0
    assert best_length(costs(t1=10.0), 1.0, 8, 1, 100) == 0


def test_tokens_that_cost_nothing_more_are_all_guessed() -> None:
    assert best_length(costs(t1=10.0, t12=10.0), 0.9, 8, 1, 0) == 8


def test_tokens_that_cost_as_much_as_a_step_each_are_never_guessed() -> None:
    assert best_length(costs(t1=10.0, t12=120.0), 1.0, 8, 1, 0) == 0


@pytest.mark.parametrize("acceptance", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_the_length_with_the_most_gain_is_taken(acceptance: float) -> None:
    # 10 ms for one token, 3 for each more.
    known = costs(t1=10.0, t2=13.0, t12=43.0)
    gains = {n: gain(acceptance, n, 10.0, 10.0 + 3.0 * n) for n in range(1, 11)}
    best = max(gains, key=lambda n: gains[n])
    expected = best if gains[best] > MIN_GAIN else 0
    assert best_length(known, acceptance, 10, 1, 0) == expected


def test_others_who_write_make_a_guess_worth_less() -> None:
    known = costs(t1=10.0, t12=43.0)
    assert best_length(known, 0.6, 8, 1, 0) > 0
    assert best_length(known, 0.6, 8, 8, 0) == 0


def test_it_closes_behind_a_long_conversation_where_each_token_looks_back_alone() -> None:
    known = costs(t1=10.0, t12=21.0)
    for _ in range(40):
        known.learn(1, 8000, 0.090)
        known.learn(5, 5 * 8000, 0.414)
    assert known.seconds(1, 8000) == pytest.approx(0.090, rel=0.05)
    assert best_length(known, 0.9, 8, 1, 8000) == 0
    # Others are not kept from guessing by that.
    assert best_length(known, 0.9, 8, 1, 100) > 0


def test_it_opens_again_when_what_was_dear_is_long_ago() -> None:
    known = costs(t1=10.0, t12=21.0)
    known.learn(1, 8000, 0.018)
    for _ in range(20):
        known.learn(5, 5 * 8000, 0.5)
    assert best_length(known, 0.9, 8, 1, 8000) == 0
    for _ in range(1000):
        known.learn(1, 8000, 0.018)
    assert best_length(known, 0.9, 8, 1, 8000) > 0


def test_a_guess_that_takes_time_of_its_own_is_worth_less() -> None:
    known = costs(t1=10.0, t12=14.0)
    free = best_length(known, 0.7, 8, 1, 0)
    dear = best_length(known, 0.7, 8, 1, 0, seconds_each=0.001)
    assert 0 < dear < free
    assert best_length(known, 0.7, 8, 1, 0, seconds_each=0.010) == 0


def test_of_several_measurements_the_fastest_counts() -> None:
    known = StepCosts()
    for milliseconds in (30.0, 10.0, 50.0):
        known.measured(1, milliseconds / 1e3)
    assert known.seconds(1, 0) == pytest.approx(0.010)


def test_a_step_that_was_held_up_says_little() -> None:
    known = costs(t1=10.0, t4=20.0)
    known.learn(4, 0, 10.0)
    assert known.seconds(4, 0) < 0.025


def test_costs_between_known_sizes_lie_on_a_line_and_never_fall() -> None:
    known = costs(t1=10.0, t4=16.0, t12=12.0)
    assert known.seconds(2, 0) == pytest.approx(0.012)
    assert known.seconds(8, 0) == pytest.approx(0.016)
    assert known.seconds(20, 0) == pytest.approx(0.016)
