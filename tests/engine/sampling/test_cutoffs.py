"""Each filter by probability or surprise against its definition in float64."""

import math

import numpy as np
import pytest

from engine.sampling import cutoffs
from tests.engine.sampling import reference
from tests.engine.sampling.rows import long_vector, of, vectors

FILTERS = {
    "typical": (cutoffs.typical_p, reference.typical),
    "tail free": (cutoffs.tail_free, reference.tail_free),
    "top a": (cutoffs.top_a, reference.top_a),
    "epsilon": (cutoffs.epsilon_cutoff, reference.epsilon),
    "eta": (cutoffs.eta_cutoff, reference.eta),
    "top n sigma": (cutoffs.top_n_sigma, reference.top_n_sigma),
}


def possible(kept, logits):
    """Whether what has no chance stays in the draw makes no difference."""
    return {int(index) for index in kept if logits[index] != -np.inf}


@pytest.mark.parametrize("name", FILTERS)
def test_what_stays_is_what_the_definition_keeps(name):
    ours, theirs = FILTERS[name]
    generator = np.random.default_rng(3)
    for logits in vectors():
        amount = float(generator.uniform(0.001, 0.999)) ** (2 if name in ("epsilon", "eta") else 1)
        kept = ours(of(logits), amount)
        assert len(kept) and sorted(set(kept.tolist())) == kept.tolist()
        assert possible(kept, logits) == possible(theirs(logits, amount), logits)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("amount", [0.0031, 0.3017, 0.9013])
@pytest.mark.parametrize("spread", [0.01, 2.0, 8.0])
@pytest.mark.parametrize("digits", [6, 1], ids=["distinct", "ties"])
def test_a_long_row_takes_no_wrong_shortcut(name, amount, spread, digits):
    ours, theirs = FILTERS[name]
    logits = np.round(long_vector(4, spread), digits)
    assert set(ours(of(logits), amount).tolist()) == theirs(logits, amount)


@pytest.mark.parametrize("name", FILTERS)
def test_a_temperature_before_counts(name):
    ours, theirs = FILTERS[name]
    for logits in vectors(50):
        kept = ours(of(logits, 0.5), 0.1)
        assert possible(kept, logits) == possible(theirs(2 * logits, 0.1), logits)


@pytest.mark.parametrize("name", FILTERS)
def test_one_candidate_always_stays(name):
    assert FILTERS[name][0](of([-4.0]), 0.5).tolist() == [0]
    kept = FILTERS[name][0](of([-math.inf, 2.0, -math.inf]), 0.5)
    assert 1 in kept.tolist()


@pytest.mark.parametrize("name", ["top a", "epsilon", "eta", "top n sigma"])
@pytest.mark.parametrize("amount", [0.2, 1.0])
def test_equal_candidates_stay_together(name, amount):
    assert len(FILTERS[name][0](of([1.5] * 7), amount)) == 7


def test_typical_takes_of_equals_the_lower_ids():
    assert cutoffs.typical_p(of([1.0] * 10), 0.45).tolist() == [0, 1, 2, 3, 4]
    assert cutoffs.typical_p(of([1.0] * 10), 0.0).tolist() == [0]


def test_typical_may_drop_the_likeliest():
    """Of .3 and 70 times .01 the rare ones are about as surprising as the average."""
    logits = np.log([0.3] + [0.01] * 70)
    assert 0 not in cutoffs.typical_p(of(logits), 0.2).tolist()


def test_tail_free_keeps_all_of_a_straight_line_and_of_two():
    assert len(cutoffs.tail_free(of([2.0] * 9), 0.5)) == 9
    assert len(cutoffs.tail_free(of([2.0, 1.0]), 0.5)) == 2
    assert cutoffs.tail_free(of([0.0, 9.0, 1.0]), 0.0).tolist() == [1]


def test_epsilon_one_keeps_the_likeliest():
    assert cutoffs.epsilon_cutoff(of([0.0, 3.0, 3.0, 2.9]), 1.0).tolist() == [1, 2]


def test_sigma_is_of_the_candidates_and_does_not_see_the_temperature():
    logits = np.float32([3.0, 2.0, 1.0, -np.inf])
    kept = cutoffs.top_n_sigma(of(logits), 1.3)
    assert kept.tolist() == [0, 1]
    assert cutoffs.top_n_sigma(of(logits, 0.1), 1.3).tolist() == [0, 1]
