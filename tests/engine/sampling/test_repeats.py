"""No-repeat n-gram and DRY against their definitions, over histories that grow."""

import numpy as np
import pytest

from engine.sampling.repeats import Dry, completing_ngrams
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams
from tests.engine.sampling import reference
from tests.engine.sampling.rows import Letters


@pytest.mark.parametrize("seed", range(30))
def test_the_ids_that_complete_an_ngram(seed):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(0, 4, int(generator.integers(0, 60)))
    size = int(generator.integers(1, 8))
    found = completing_ngrams(tokens.astype(np.int32), size).tolist()
    assert set(found) == reference.completing_ngrams(tokens.tolist(), size)


def dry_of(texts=(), **params):
    vocabulary = SamplingVocabulary(Letters(texts=texts))
    return Dry(SamplingParams(**{"dry_multiplier": 0.8, **params}), vocabulary)


def found_by(dry, tokens, is_in_form=False):
    tokens = np.array(tokens, np.int32)
    dry.follow(tokens, is_in_form=is_in_form)
    ids, amounts = dry.penalties(tokens, is_in_form=is_in_form)
    return dict(zip(ids.tolist(), amounts.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_dry_follows_a_growing_text_as_the_definition_does(seed):
    generator = np.random.default_rng(seed)
    # Ids 0 to 4 are letters, 5 has a breaker in it.
    texts = ["a", "b", "c", "d", "e", 'x"']
    params = {
        "dry_multiplier": float(generator.uniform(0.1, 2)),
        "dry_base": float(generator.choice([1.0, 1.2, 1.75, 4.0])),
        "dry_allowed_length": int(generator.integers(1, 4)),
        "dry_window": int(generator.choice([0, 1, 5, 30, 1000])),
    }
    dry = dry_of(texts, **params)
    tokens = generator.integers(0, int(generator.integers(2, 7)), 20).tolist()
    for _ in range(60):
        expected = reference.dry(tokens, *params.values(), lambda token: token == 5)
        assert found_by(dry, tokens) == pytest.approx(expected)
        tokens += generator.integers(0, 6, int(generator.integers(1, 3))).tolist()


@pytest.mark.parametrize("length", [3, 100, 1000])
def test_a_long_prompt_of_one_token_is_penalised_up_to_a_bound(length):
    expected = reference.dry([7] * length, 0.8, 1.75, 2, 10_000)
    assert found_by(dry_of(), [7] * length) == pytest.approx({7: min(1e30, expected[7])})


@pytest.mark.parametrize("window", [1, 2, 3, 6, 100])
def test_a_run_ends_where_the_window_begins_while_both_move(window):
    dry, tokens = dry_of(dry_window=window, dry_allowed_length=1), [7] * 4
    for _ in range(20):
        expected = reference.dry(tokens, 0.8, 1.75, 1, window)
        assert found_by(dry, tokens) == pytest.approx(expected)
        tokens.append(7)


def test_a_breaker_over_the_border_of_two_tokens_breaks():
    texts = ["a", "b", "<", "/p>", "c"]
    run = [0, 1, 4, 0, 1]
    assert found_by(dry_of(texts, dry_breakers=("</p>",)), run) == {4: pytest.approx(0.8)}
    over = [0, 2, 3, 1, 4, 0, 2, 3, 1]
    assert set(found_by(dry_of(texts, dry_breakers=()), over)) == {4}
    broken = dry_of(texts, dry_breakers=("</p>",), dry_allowed_length=1)
    # Only `b` repeats: what stands before the tag does not count.
    assert found_by(broken, over) == {4: pytest.approx(0.8)}


def test_punctuation_of_json_breaks_in_a_form_only():
    texts = ["a", ",", "b"]
    tokens = [0, 1, 2, 0, 1]
    assert set(found_by(dry_of(texts), tokens)) == {2}
    assert found_by(dry_of(texts), tokens, is_in_form=True) == {}


def test_a_breaker_itself_is_never_penalised():
    texts = ["a", "b", ":"]
    assert found_by(dry_of(texts), [0, 1, 2, 0, 1]) == {}


def test_a_copy_goes_its_own_way():
    dry = dry_of(dry_allowed_length=1)
    assert found_by(dry, [1, 2, 1]) == {2: pytest.approx(0.8)}
    other = dry.copy()
    assert found_by(other, [1, 2, 1, 2]) == {1: pytest.approx(0.8 * 1.75)}
    assert found_by(dry, [1, 2, 1, 3]) == {}
    assert found_by(other, [1, 2, 1, 2, 1]) == {2: pytest.approx(0.8 * 1.75**2)}
