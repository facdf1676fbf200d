"""Each filter against a slow definition in float64, of `reference.py`."""

import math

import numpy as np
import pytest

from engine.sampling.samplers import NUM_SAMPLED, draw, min_p, top_k, top_p
from tests.engine.sampling import reference
from tests.engine.sampling.reference import by_rank, softmax
from tests.engine.sampling.rows import long_vector, of, vectors


def assert_top_p(logits, p):
    """The kept ones are a rank prefix; it holds `p`, and without its last one it would not."""
    kept = top_p(of(logits), p)
    order = by_rank(logits)
    assert kept.tolist() == sorted(order[: len(kept)])
    weights = np.exp(logits.astype(np.float64) - float(logits.max()))
    ranked = weights[order] / weights.sum()
    assert math.fsum(ranked[: len(kept)]) >= p - 1e-12
    assert len(kept) == 1 or math.fsum(ranked[: len(kept) - 1]) < p + 1e-12


def test_top_k_keeps_exactly_k_and_of_equals_the_lower_ids():
    generator = np.random.default_rng(1)
    for logits in vectors():
        k = int(generator.integers(1, len(logits) + 5))
        assert top_k(of(logits), k).tolist() == sorted(by_rank(logits)[:k])
    assert top_k(of(np.float32([1, 1, 1, 1, 0])), 2).tolist() == [0, 1]


@pytest.mark.parametrize("k", [1, 40, 70, 71, 5000, 8999, 9000, 20_000])
@pytest.mark.parametrize("round_to", [6, 0], ids=["distinct", "ties"])
def test_top_k_of_a_long_row_takes_no_wrong_shortcut(k, round_to):
    logits = np.round(long_vector(2), round_to)
    assert top_k(of(logits), k).tolist() == sorted(by_rank(logits)[:k])


@pytest.mark.parametrize("place", ["front", "end", "one column"])
def test_top_k_finds_the_largest_wherever_they_lie(place):
    logits = long_vector(3)
    size = len(logits)
    width = size // 64
    where = {"front": slice(0, 30), "end": slice(size - 30, size), "one column": slice(5, 0, width)}
    indices = np.arange(size)[where[place]] if place != "one column" else 5 + width * np.arange(30)
    logits[indices] += np.float32(50)
    assert top_k(of(logits), 30).tolist() == indices.tolist()


def test_top_p_keeps_the_fewest_that_hold_p():
    generator = np.random.default_rng(4)
    for logits in vectors():
        assert_top_p(logits, float(generator.uniform(0.01, 0.999)))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 0.99, 0.9999, 0.9999999])
@pytest.mark.parametrize("spread", [0.01, 1.0, 3.0, 8.0])
def test_top_p_of_a_long_row_takes_no_wrong_shortcut(p, spread):
    assert_top_p(long_vector(5, spread), p)
    assert_top_p(np.round(long_vector(6, spread)), p)


@pytest.mark.parametrize("spread", [0.1, 8.0])
def test_top_p_of_a_long_row_with_impossible_tokens(spread):
    logits = long_vector(22, spread)
    logits[np.random.default_rng(1).random(len(logits)) < 0.5] = -np.inf
    for p in (0.0, 0.5, 0.95, 0.999999):
        kept = top_p(of(logits), p)
        assert set(kept.tolist()) == reference.top_p(logits, p)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("shift", [-3, -0.01, 0, 0.01, 3])
def test_top_p_of_a_flat_long_row_is_right_however_its_sample_misleads(p, shift):
    size = 5 * NUM_SAMPLED + 7
    logits = np.random.default_rng(7).normal(0, 0.1, size).astype(np.float32)
    logits[:: size // NUM_SAMPLED] += np.float32(shift)
    assert_top_p(logits, p)
    assert_top_p(np.round(logits, 1), p)


def test_top_p_zero_keeps_one():
    assert top_p(of(np.float32([1, 3, 3, 2])), 0.0).tolist() == [1]


@pytest.mark.parametrize(("nudge", "expected"), [(-2e-9, 4001), (2e-9, 4002)])
def test_top_p_of_a_long_row_decides_exactly_where_float32_could_not(nudge, expected):
    logits = np.full(8192, -3.1, dtype=np.float32)
    logits[100] = 0
    weight = math.exp(float(np.float32(-3.1)))
    p = (1 + 4000 * weight) / (1 + 8191 * weight) * (1 + nudge)
    assert len(top_p(of(logits), p)) == expected


@pytest.mark.parametrize(("nudge", "expected"), [(-2e-9, 401), (2e-9, 402)])
def test_the_same_where_only_a_part_of_the_row_is_near(nudge, expected):
    logits = np.full(8192, -40.0, dtype=np.float32)
    logits[1000:1900] = -3.1
    logits[100] = 0
    weight, rest = math.exp(float(np.float32(-3.1))), 7291 * math.exp(-40.0)
    p = (1 + 400 * weight) / (1 + 900 * weight + rest) * (1 + nudge)
    assert len(top_p(of(logits), p)) == expected


def test_min_p_keeps_those_near_the_most_likely():
    generator = np.random.default_rng(7)
    for logits in vectors():
        share = float(generator.uniform(0.001, 1.0))
        probabilities = softmax(logits)
        least = share * max(probabilities)
        expected = [i for i, q in enumerate(probabilities) if q >= least]
        assert min_p(of(logits), share).tolist() == expected


@pytest.mark.parametrize("share", [0.03, 0.05, 0.08, 0.1, 0.3, 0.7])
def test_min_p_is_not_rounded_to_float32(share):
    """The bound lies between two neighbours in float32: only the upper one is inside."""
    near = np.float32(math.log(share))
    logits = np.float32([0.0, np.nextafter(near, np.float32(-9)), near, np.nextafter(near, 0)])
    expected = [0, *(i for i in (1, 2, 3) if float(logits[i]) >= math.log(share))]
    assert min_p(of(logits), share).tolist() == expected


def test_min_p_one_keeps_every_maximum_and_nothing_else():
    assert min_p(of(np.float32([0, 3, 3, 2.9999998])), 1.0).tolist() == [1, 2]


def test_the_draw_follows_the_probabilities():
    """Chi-square of 20,000 draws: 99.9 % of honest generators stay under the bound."""
    logits = np.float32([2.0, 1.0, 0.5, 0.0, -1.0, -np.inf])
    generator = np.random.default_rng(8)
    counts = np.zeros(6)
    for _ in range(20_000):
        counts[draw(of(logits, 0.8), generator)] += 1
    expected = 20_000 * np.array(softmax([z / 0.8 for z in logits]))
    assert counts[5] == 0
    assert ((counts - expected)[:5] ** 2 / expected[:5]).sum() < 18.5


@pytest.mark.parametrize("temperature", [1e-320, 1e-9])
def test_a_temperature_near_zero_draws_the_maximum(temperature):
    logits = np.float32([0.0, -3e38, 1.0, 1.0 - 1e-6])
    assert draw(of(logits, temperature), np.random.default_rng(0)) == 2


class SameNumber:
    """A generator that always gives one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


@pytest.mark.parametrize("largest", [0.0, 0.1, 0.7, -3.3])
def test_a_token_without_probability_is_never_drawn(largest):
    logits = np.float32([-np.inf, largest, largest - 1, -np.inf, -np.inf])
    assert draw(of(logits, 0.9), SameNumber(0.0)) == 1
    assert draw(of(logits, 0.9), SameNumber(math.nextafter(1.0, 0.0))) == 2


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_a_temperature_before_counts_for_top_p_and_min_p(temperature):
    generator = np.random.default_rng(9)
    for logits in vectors(100):
        share = float(generator.uniform(0.01, 0.99))
        candidates = of(logits, temperature)
        expected = reference.min_p(logits, share, temperature)
        assert set(min_p(candidates, share).tolist()) == expected
        if len(set(logits.tolist())) > 1:
            # Equal ones add up to the share exactly, or not, as rounding has it.
            expected = reference.top_p(logits, share, temperature)
            assert set(top_p(candidates, share).tolist()) == expected


@pytest.mark.parametrize("temperature", [1e-320, 1e-30, 0.02, 0.7, 4.0])
@pytest.mark.parametrize("spread", [0.01, 2.0])
def test_top_p_of_a_long_row_at_a_temperature(temperature, spread):
    logits = long_vector(21, spread)
    kept = top_p(of(logits, temperature), 0.9).tolist()
    assert set(kept) == reference.top_p(logits, 0.9, max(temperature, 1e-100))
