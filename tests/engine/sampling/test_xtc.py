"""Exclude top choices: all but the last of the choices, unless an end or a line break would go."""

import numpy as np
import pytest

from engine.sampling.xtc import without_top_choices
from tests.engine.sampling import reference
from tests.engine.sampling.rows import of, vectors

NOBODY = np.empty(0, np.intp)
LOGITS = np.log([0.5, 0.3, 0.12, 0.05, 0.03])


def stays(logits, threshold, protected=NOBODY):
    return without_top_choices(of(logits), threshold, np.array(protected, np.intp)).tolist()


def test_all_choices_but_the_least_likely_one_are_left_out():
    assert stays(LOGITS, 0.1) == [2, 3, 4]
    assert stays(LOGITS, 0.04) == [3, 4]


def test_a_single_choice_stays():
    assert stays(LOGITS, 0.4) == [0, 1, 2, 3, 4]
    assert stays([7.0], 0.1) == [0]


@pytest.mark.parametrize(("protected", "expected"), [([0], 5), ([1, 4], 5), ([2], 3), ([3, 9], 3)])
def test_nothing_is_left_out_where_an_end_or_a_line_break_would_be(protected, expected):
    assert len(stays(LOGITS, 0.1, protected)) == expected


def test_protected_tokens_are_found_by_their_ids_after_other_filters():
    candidates = of(LOGITS).keep(np.array([1, 2, 3]))
    assert without_top_choices(candidates, 0.1, np.array([1])).tolist() == [0, 1, 2]
    assert without_top_choices(candidates, 0.1, np.array([0, 4])).tolist() == [2]


def test_a_threshold_of_zero_does_not_leave_what_has_no_chance():
    assert 1 in stays([0.0, -1.0, -np.inf], 0.0)


def test_what_stays_is_what_the_definition_keeps():
    generator = np.random.default_rng(5)
    for logits in vectors():
        threshold = float(generator.uniform(0.001, 0.5))
        protected = np.sort(generator.choice(len(logits), len(logits) // 4, replace=False))
        expected = reference.xtc(logits, threshold, protected.tolist())
        assert set(stays(logits, threshold, protected)) == expected
