"""Where a sum is reached, on long vectors, against sorting and adding up."""

import math

import numpy as np
import pytest

from engine.sampling.mass import index_of_mass, nearest_with_mass


def shapes():
    generator = np.random.default_rng(2)
    for size in (1, 7, 4096, 4097, 9001, 30_000):
        yield generator.random(size)
        yield np.round(generator.random(size), 2)
        yield np.zeros(size)
        yield np.where(generator.random(size) < 0.3, np.inf, generator.random(size))
        yield np.append(generator.random(size - 1) * 1e-9, 50.0)


@pytest.mark.parametrize("must_exceed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.0001, 0.3123, 0.95, 1.0])
def test_the_nearest_that_reach_a_mass(share, must_exceed):
    generator = np.random.default_rng(3)
    for distances in shapes():
        weights = generator.random(len(distances)) * np.isfinite(distances)
        order = np.argsort(distances, kind="stable")
        sums = np.cumsum(weights[order])
        # Between two sums, so that rounding decides nothing.
        place = int(share * (np.count_nonzero(weights) - 1))
        mass = sums[place] - weights[order][place] / 2
        expected = min(np.searchsorted(sums, mass, "right" if must_exceed else "left"), place)
        kept = nearest_with_mass(distances, weights, mass, must_exceed=must_exceed)
        assert kept.tolist() == sorted(order[: expected + 1].tolist())


def test_a_mass_that_is_never_reached_keeps_all():
    for distances in shapes():
        weights = np.ones(len(distances))
        kept = nearest_with_mass(distances, weights, len(weights) + 1.0)
        assert len(kept) == len(weights)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.25, 0.5, 0.999, math.nextafter(1.0, 0.0)])
def test_the_index_at_which_a_share_is_exceeded_has_a_weight(share):
    generator = np.random.default_rng(4)
    for size in (1, 500, 4097, 30_000):
        weights = generator.random(size) ** 20 * (generator.random(size) < 0.01)
        weights[generator.integers(size)] = 1.0
        index = index_of_mass(weights, share)
        assert weights[index] > 0
        before, after = math.fsum(weights[:index]), math.fsum(weights[: index + 1])
        mass = share * math.fsum(weights)
        assert before <= mass + 1e-9 and after >= mass - 1e-9
