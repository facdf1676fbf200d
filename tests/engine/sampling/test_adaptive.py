"""Adaptive-p: a draw that prefers a probability, and a memory that makes up for what was drawn."""

import numpy as np
import pytest

from engine.sampling.adaptive import AdaptiveP
from tests.engine.sampling import reference
from tests.engine.sampling.rows import of, vectors


@pytest.mark.parametrize("seed", range(5))
def test_the_draw_is_what_the_definition_gives_over_a_history(seed):
    generator = np.random.default_rng(seed)
    target, decay = float(generator.uniform(0.05, 0.9)), float(generator.uniform(0, 0.99))
    adaptive, slowly = AdaptiveP(target, decay), reference.Adaptive(target, decay)
    for logits in vectors(40, seed):
        expected = slowly.probabilities(logits)
        shaped = adaptive.shape(of(logits)).probabilities()
        assert shaped == pytest.approx(expected, abs=1e-5)
        had = float(reference.softmax(logits)[generator.choice(len(logits), p=expected)])
        adaptive.observe(had)
        slowly.drawn.append(had)


def test_after_a_likely_token_the_unlikely_are_preferred():
    adaptive = AdaptiveP(0.5, 0.5)
    logits = np.log([0.5, 0.3, 0.2])
    assert adaptive.shape(of(logits)).probabilities().argmax() == 0
    for _ in range(3):
        adaptive.observe(1.0)
    assert adaptive.shape(of(logits)).probabilities().argmax() == 2


def test_what_has_no_chance_gets_none():
    shaped = AdaptiveP(0.1, 0.9).shape(of([1.0, -np.inf, 0.0]))
    assert shaped.probabilities()[1] == 0.0


def test_a_temperature_before_it_is_not_applied_twice():
    adaptive = AdaptiveP(0.3, 0.9)
    warm = adaptive.shape(of([2.0, 1.0, 0.0], 0.5))
    assert warm.probabilities() == pytest.approx(
        adaptive.shape(of([4.0, 2.0, 0.0])).probabilities()
    )


def test_a_copy_goes_its_own_way():
    adaptive = AdaptiveP(0.3, 0.9)
    other = adaptive.copy()
    other.observe(1.0)
    assert adaptive.total_weight == pytest.approx(10.0)
    assert other.weighted_sum == pytest.approx(1 + 0.9 * 3.0)
