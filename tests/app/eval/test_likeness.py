"""Perplexity and divergence, against what is known of them."""

import numpy as np
import pytest

from app.eval.likeness import Likeness, log_probabilities


def rows(*probabilities: tuple[float, ...]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities, np.float32))


def test_a_model_is_like_itself() -> None:
    likeness = Likeness()
    logits = np.random.default_rng(0).normal(size=(5, 100)).astype(np.float32)
    likeness.count(logits, logits, [1, 2, 3, 4, 5])
    assert likeness.divergence == 0 and likeness.same_top == 1 and likeness.num_tokens == 5


def test_the_divergence_is_the_sum_over_all_tokens() -> None:
    likeness = Likeness()
    likeness.count(rows((0.5, 0.5)), rows((0.9, 0.1)), [0])
    expected = 0.9 * np.log(0.9 / 0.5) + 0.1 * np.log(0.1 / 0.5)
    assert likeness.divergence == pytest.approx(expected, rel=1e-6)


def test_the_perplexity_is_how_many_tokens_were_equally_likely() -> None:
    likeness = Likeness()
    even = rows((0.25,) * 4, (0.25,) * 4)
    likeness.count(even, even, [0, 3])
    assert likeness.perplexity == pytest.approx(4.0)


def test_logits_may_be_shifted_and_large() -> None:
    logits = rows((0.7, 0.3))
    np.testing.assert_allclose(
        log_probabilities(logits + 500), log_probabilities(logits), atol=1e-4
    )


def test_what_the_reference_finds_impossible_counts_as_nothing() -> None:
    likeness = Likeness()
    likeness.count(rows((0.5, 0.25, 0.25)), rows((0.5, 0.5, 0.0)), [0])
    assert np.isfinite(likeness.divergence) and likeness.divergence > 0


def test_a_few_bad_tokens_are_seen_beside_the_mean() -> None:
    likeness = Likeness()
    even, sure = rows((0.5, 0.5)), rows((0.999, 0.001))
    for _ in range(98):
        likeness.count(even, even, [0])
    for _ in range(2):
        likeness.count(even, sure, [0])
    assert likeness.worst_divergence > 10 * likeness.divergence
    assert likeness.divergence_error > 0
