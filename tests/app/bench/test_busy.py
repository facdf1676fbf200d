"""How the windows of a busy trial are read."""

import pytest

from app.bench.busy import Burner, Trial, rates, speed, summary, undisturbed
from app.bench.compare import Pair

IDLE = 120.0


def trial(during: float = IDLE, after: float = IDLE, others: float = 0.0) -> Trial:
    """The first four windows after each change are slow, and are not judged."""
    slow = (20.0,) * 4
    return Trial((IDLE,) * 11, slow + (during,) * 16, slow + (after,) * 16, others)


def test_a_rate_is_eight_tokens_over_their_time() -> None:
    arrivals = [index * 0.01 for index in range(20)]
    assert rates(arrivals) == pytest.approx((100.0, 100.0))


def test_a_slow_window_weighs_as_long_as_it_took() -> None:
    assert speed([100.0, 100.0, 50.0]) == pytest.approx(75.0)


def test_the_first_32_tokens_after_a_change_are_not_judged() -> None:
    _, busy, _, after = summary([Pair(trial(during=70.0, after=118.0), trial())] * 20)
    assert busy["ratio"] == pytest.approx(70 / 120)
    assert after["ratio"] == pytest.approx(118 / 120)
    assert busy["passed"] and after["passed"]


def test_half_the_speed_does_not_pass() -> None:
    _, busy, _, _ = summary([Pair(trial(during=60.0), trial())] * 20)
    assert not busy["passed"]


def test_a_trial_that_others_disturbed_is_left_out_with_its_twin() -> None:
    clean, disturbed = Pair(trial(), trial()), Pair(trial(), trial(others=0.8))
    assert undisturbed([clean, disturbed]) == [clean]


def test_a_burner_waits_for_its_start_and_ends_with_the_block() -> None:
    with Burner(1) as burner:
        process = burner._processes[0]
        burner.start()
        assert process.poll() is None
    assert process.returncode is not None
