"""Comparing two sides: what a figure says, and when enough has been measured."""

import random
from itertools import count

import pytest

from app.bench.compare import Bar, Figure, Pair, figure_of, interleave, interval_rank


def ratio(pair: Pair[float]) -> dict[str, float]:
    return {"ratio": pair.ours / pair.theirs}


def test_a_figure_is_the_median_and_two_measured_values_around_it() -> None:
    values = [float(value) for value in range(1, 22)]
    figure = figure_of(values)
    assert figure.median == 11
    assert (figure.low, figure.high) == (6, 16)


def test_too_few_values_give_all_there_is_as_the_interval() -> None:
    assert figure_of([3.0, 1.0, 2.0]) == Figure(2.0, 1.0, 3.0, 3)


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing"):
        figure_of([])


@pytest.mark.parametrize(("num", "rank"), [(1, 0), (5, 0), (6, 0), (9, 1), (20, 5), (100, 39)])
def test_the_rank_of_the_interval_is_the_textbook_one(num: int, rank: int) -> None:
    assert interval_rank(num) == rank


def test_the_interval_holds_the_true_median_in_at_least_95_of_100_cases() -> None:
    generator = random.Random(7)
    held = 0
    for _ in range(2000):
        # Skewed, as times are.
        figure = figure_of([generator.expovariate(1.0) for _ in range(25)])
        held += figure.low <= 0.6931 <= figure.high
    assert held / 2000 > 0.94


def test_a_bar_is_met_only_when_the_median_can_be_believed() -> None:
    bar = Bar(at_least=0.97)
    assert bar.is_met(Figure(0.98, 0.95, 1.02, 20))
    assert not bar.is_met(Figure(0.96, 0.95, 0.97, 20))
    assert not bar.is_met(Figure(1.3, 0.9, 1.6, 20))


def test_a_bar_from_above_is_met_from_below() -> None:
    bar = Bar(at_most=1.5)
    assert bar.is_met(Figure(1.4, 1.3, 1.5, 20))
    assert not bar.is_met(Figure(1.6, 1.55, 1.65, 20))


def test_the_sides_take_turns_at_going_first() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return 1.0

    interleave(
        lambda number: side(f"ours {number}"),
        lambda number: side(f"theirs {number}"),
        ratio,
        minutes=1,
        min_pairs=2,
    )
    assert order == ["ours 0", "theirs 0", "theirs 1", "ours 1"]


def test_steady_sides_need_only_the_least_number_of_pairs() -> None:
    pairs, figures = interleave(lambda _: 2.0, lambda _: 1.0, ratio, minutes=1, min_pairs=20)
    assert len(pairs) == 20
    assert figures["ratio"] == Figure(2.0, 2.0, 2.0, 20)


def test_a_noisy_ratio_gets_more_pairs_until_it_is_narrow() -> None:
    generator = random.Random(3)
    pairs, figures = interleave(
        lambda _: generator.lognormvariate(0.0, 0.5), lambda _: 1.0, ratio, minutes=1, min_pairs=20
    )
    assert len(pairs) > 20
    assert figures["ratio"].is_narrow


def test_the_minutes_end_what_never_becomes_narrow() -> None:
    seconds = count(step=10)
    pairs, figures = interleave(
        lambda number: 1.0 if number % 2 else 9.0,
        lambda _: 1.0,
        ratio,
        minutes=2,
        clock=lambda: float(next(seconds)),
    )
    assert len(pairs) == 12
    assert not figures["ratio"].is_narrow


def test_one_wide_figure_keeps_the_others_going() -> None:
    generator = random.Random(5)

    def two(pair: Pair[float]) -> dict[str, float]:
        return {"steady": 1.0, "noisy": pair.ours}

    pairs, _ = interleave(
        lambda _: generator.lognormvariate(0.0, 0.5), lambda _: 1.0, two, minutes=1, min_pairs=20
    )
    assert len(pairs) > 20
