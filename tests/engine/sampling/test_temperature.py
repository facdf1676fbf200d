"""The temperature that moves with the entropy."""

import numpy as np
import pytest

from engine.sampling.temperature import dynamic_temperature
from tests.engine.sampling import reference
from tests.engine.sampling.rows import of, vectors


def test_it_is_what_the_definition_gives():
    generator = np.random.default_rng(6)
    for logits in vectors():
        middle, reach, exponent = generator.uniform(0.1, 2, 3)
        expected = reference.dynamic_temperature(logits, middle, reach, exponent)
        found = dynamic_temperature(of(logits), middle, reach, exponent)
        assert found == pytest.approx(expected, rel=1e-9)


def test_it_is_lowest_where_there_is_no_doubt_and_highest_where_all_are_equal():
    assert dynamic_temperature(of([100.0, 0.0]), 1.0, 0.5, 1.0) == pytest.approx(0.5)
    assert dynamic_temperature(of([1.0, 1.0]), 1.0, 0.5, 1.0) == pytest.approx(1.5)
    assert dynamic_temperature(of([1000.0, 0.0]), 1.0, 3.0, 1.0) == 0.0


def test_of_one_candidate_the_middle_is_left():
    assert dynamic_temperature(of([3.0]), 0.8, 0.5, 1.0) == 0.8
    assert dynamic_temperature(of([3.0, -np.inf]), 0.8, 0.5, 1.0) == 0.8
