"""Mirostat: what may be drawn now, and how the allowance follows what was drawn."""

import math

import numpy as np
import pytest

from engine.sampling.mirostat import Mirostat
from tests.engine.sampling import reference
from tests.engine.sampling.rows import distinct_vectors, of, vectors


@pytest.mark.parametrize("seed", range(5))
def test_the_second_version_keeps_what_is_not_too_surprising_over_a_history(seed):
    generator = np.random.default_rng(seed)
    tau, eta = float(generator.uniform(1, 8)), float(generator.uniform(0.05, 0.5))
    mirostat, mu = Mirostat(2, tau, eta, 700), 2 * tau
    for logits in vectors(60, seed):
        kept = mirostat.keep(of(logits)).tolist()
        assert set(kept) == reference.mirostat_2(logits, mu)
        probabilities = reference.softmax(logits[kept])
        drawn = generator.choice(len(kept), p=probabilities)
        mirostat.observe(float(probabilities[drawn]))
        mu -= eta * (-math.log2(probabilities[drawn]) - tau)
        assert mirostat.mu == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_version_keeps_as_many_as_the_slope_says(seed):
    generator = np.random.default_rng(seed)
    mirostat = Mirostat(1, 3.0, 0.1, 32_000)
    for logits in distinct_vectors(60, seed, least=3):
        mirostat.mu = float(generator.uniform(-2, 14))
        kept = mirostat.keep(of(logits)).tolist()
        assert set(kept) == reference.mirostat_1(logits, mirostat.mu, 32_000)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mu", [-1000.0, 0.0, 6.0, 1000.0])
@pytest.mark.parametrize(
    "logits",
    [[3.0], [1.0] * 5, [0.0, -np.inf], [5.0, -np.inf, 4.0, -np.inf], [0.0, -3e38], [9.0, -9.0]],
    ids=str,
)
def test_something_always_stays(version, mu, logits):
    mirostat = Mirostat(version, 5.0, 0.1, len(logits))
    mirostat.mu = mu
    kept = mirostat.keep(of(logits)).tolist()
    assert int(np.argmax(logits)) in kept


def test_a_slope_of_exactly_one_is_no_division_by_zero():
    """Zipf's law itself: the formula has 0 / 0 there, and a limit."""
    ranks = np.arange(1, 200)
    near, exact = Mirostat(1, 3.0, 0.1, 50_000), Mirostat(1, 3.0, 0.1, 50_000)
    near.mu = exact.mu = 5.0
    expected = int(2**5 / math.log(50_000))
    assert len(exact.keep(of(-np.log(ranks)))) in (expected, expected - 1, expected + 1)
    assert abs(len(near.keep(of(-1.0001 * np.log(ranks)))) - expected) <= 1


def test_a_slope_that_is_one_to_the_last_bit_has_the_limit():
    """Of two candidates it is their distance by ln 2, and 1 / (1 / ln 2) is ln 2."""
    candidates = of([1.0, 0.0], 1 / math.log(2))
    assert -candidates.exponents()[1] == math.log(2)
    mirostat = Mirostat(1, 3.0, 0.1, 1000)
    for mu, num_kept in ((math.log2(math.log(1000)) + 1.01, 2), (2.0, 1)):
        mirostat.mu = mu
        assert len(mirostat.keep(candidates)) == num_kept


def test_a_copy_goes_its_own_way():
    mirostat = Mirostat(2, 5.0, 0.1, 10)
    other = mirostat.copy()
    other.observe(0.5)
    assert mirostat.mu == 10.0 and other.mu == pytest.approx(10.4)
