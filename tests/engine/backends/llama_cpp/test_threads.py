"""The thread tuner against simulated machines: what it takes, how soon, and what trying costs."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

import pytest

from engine.backends.llama_cpp.threads import ThreadTuner, candidate_counts

# Seconds a step takes on so many threads, at a step.
Machine = Callable[[int, int], float]

# Measured with the starter model on two cores: idle, and one of them taken by another program.
IDLE = {1: 1 / 70, 2: 1 / 122}
BUSY = {1: 1 / 79, 2: 1 / 33}


def two_cores(is_busy: Callable[[int], bool]) -> Machine:
    return lambda step, threads: (BUSY if is_busy(step) else IDLE)[threads]


def sixteen_cores(num_busy: Callable[[int], int]) -> Machine:
    """All threads wait for one that shares its core."""

    def seconds(step: int, threads: int) -> float:
        alone = 0.02 * (1 / threads + 0.02) + 0.0002 * max(0, threads - 14)
        return alone if threads <= 16 - num_busy(step) else 2.5 * alone

    return seconds


@dataclass(frozen=True)
class Step:
    taken: int
    current: int
    seconds: float
    best: float


def history(
    max_threads: int,
    machine: Machine,
    *,
    steps: int = 600,
    noise: float = 0.03,
    hiccups: float = 0.0,
    seed: int = 0,
) -> list[Step]:
    """What the tuner takes; `hiccups` of the steps take several times as long as they would."""
    choose = random.Random(seed)
    tuner = ThreadTuner(max_threads)
    taken = []
    for step in range(steps):
        count = tuner.choose(1)
        true = machine(step, count)
        seen = true * max(0.7, choose.gauss(1, noise))
        if choose.random() < hiccups:
            seen *= choose.uniform(2, 6)
        tuner.record(seen)
        best = min(machine(step, each) for each in candidate_counts(max_threads))
        taken.append(Step(count, tuner.current, true, best))
    return taken


def cost(steps: list[Step]) -> float:
    """How much longer than with the best count known."""
    return sum(step.seconds for step in steps) / sum(step.best for step in steps) - 1


def steps_until(steps: list[Step], count: int, start: int) -> int:
    """From `start` until the tuner stays with `count` for five steps."""
    return next(
        index
        for index in range(len(steps) - start)
        if all(step.current == count for step in steps[start + index : start + index + 5])
    )


def test_one_core_has_nothing_to_try() -> None:
    tuner = ThreadTuner(1)
    for _ in range(200):
        assert tuner.choose(1) == 1
        tuner.record(random.random())


@pytest.mark.parametrize("max_threads", [2, 3, 4, 6, 8, 16, 64])
def test_the_counts_worth_trying_are_few_and_possible(max_threads: int) -> None:
    counts = candidate_counts(max_threads)
    assert counts == sorted(set(counts))
    assert counts[-1] == max_threads
    assert counts[0] >= 1
    assert len(counts) <= 4


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_an_idle_machine_keeps_all_cores_at_almost_no_cost(noise: float, seed: int) -> None:
    steps = history(2, two_cores(lambda step: False), noise=noise, seed=seed)
    assert {step.current for step in steps} == {2}
    assert cost(steps[100:]) < 0.025


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_a_busy_core_is_left_alone_and_trying_again_costs_less_than_a_tenth(
    noise: float, seed: int
) -> None:
    steps = history(2, two_cores(lambda step: True), noise=noise, seed=seed)
    assert {step.current for step in steps[50:]} == {1}
    assert cost(steps[50:]) < 0.08


@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_a_change_is_followed_within_a_few_steps_and_back_within_32(
    noise: float, seed: int
) -> None:
    machine = two_cores(lambda step: 200 <= step < 400)
    steps = history(2, machine, noise=noise, seed=seed)
    assert steps_until(steps, 1, start=200) <= 6
    assert steps_until(steps, 2, start=400) <= 32


def test_with_hiccups_a_change_is_still_followed() -> None:
    machine = two_cores(lambda step: 200 <= step < 400)
    runs = [history(2, machine, hiccups=0.05, seed=seed) for seed in range(20)]
    assert max(steps_until(run, 1, start=200) for run in runs) <= 32
    assert mean(steps_until(run, 2, start=400) for run in runs) <= 32
    assert mean(cost(run) for run in runs) < 0.1


@pytest.mark.parametrize("num_busy", [0, 1, 8, 12])
def test_many_cores_come_close_to_the_best_count(num_busy: int) -> None:
    runs = [history(16, sixteen_cores(lambda step: num_busy), seed=seed) for seed in range(5)]
    assert mean(cost(run[100:]) for run in runs) < 0.1


def test_times_of_another_batch_size_are_not_compared() -> None:
    """A larger batch is slower, and that says nothing about the machine."""
    tuner = ThreadTuner(2)
    for step in range(400):
        size = 1 if step % 20 < 10 else 8
        count = tuner.choose(size)
        tuner.record(IDLE[count] * size)
        assert tuner.current == 2
