"""The sampler: the order of its filters, broken logits, and who shares randomness with whom."""

import logging
import math

import numpy as np
import pytest

from engine.errors import EngineError
from engine.request import Request
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from tests.engine.sampling.rows import Letters

NAN = math.nan
INF = math.inf
PLAIN = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def request(prompt=(0,), **params):
    return Request(list(prompt), SamplingParams(**params))


def sample(sampler, logits, requests):
    return [sampler.sample_row(row, own) for row, own in zip(logits, requests, strict=True)]


def rows(count, num_tokens=300, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.standard_normal((count, num_tokens)) * 2).astype(np.float32)


def generate(sampler, own, steps, others=(), seed=3):
    """`steps` tokens of `own`; `others` are sampled in the same calls, around it."""
    num_tokens = 300
    tokens = []
    for step in range(steps):
        mine = rows(1, num_tokens, seed * 1000 + step)
        theirs = rows(len(others), num_tokens, 77 + step)
        batch = [*others[:1], own, *others[1:]]
        logits = np.concatenate([theirs[:1], mine, theirs[1:]])
        for each, token in zip(batch, sample(sampler, logits, batch), strict=True):
            each.token_ids.append(token)
        tokens.append(own.token_ids[-1])
    return tokens


def drawn(row, draws=300, **params):
    """Which tokens come out of many draws."""
    logits = np.float32([row])
    sampler, own = Sampler(Letters(len(row))), request(seed=5, **params)
    return {sample(sampler, logits, [own])[0] for _ in range(draws)}


def test_temperature_zero_takes_the_largest_and_of_equals_the_first():
    assert drawn([0, 3, 1, 3], draws=1, temperature=0.0) == {1}


def test_penalties_count_before_the_greedy_choice():
    logits = np.float32([[2.0, 1.9]])
    assert sample(Sampler(Letters(2)), logits, [request(temperature=0.0)]) == [0]
    assert sample(
        Sampler(Letters(2)), logits, [request(temperature=0.0, repetition_penalty=1.5)]
    ) == [1]


def test_temperature_comes_after_the_filters():
    """Before top-p, a temperature of 0.5 would leave one token."""
    assert drawn([3, 2, 1], **PLAIN | {"top_p": 0.8}, temperature=0.5) == {0, 1}


def test_top_p_is_the_share_of_what_top_k_left():
    assert drawn([1, 1, 1, 1], **PLAIN | {"top_k": 2, "top_p": 0.5}) == {0}


def test_all_filters_off_leaves_every_token():
    assert drawn([0.0, 0.1, 0.2], **PLAIN) == {0, 1, 2}


def test_a_vocabulary_of_one_token_works():
    assert drawn([-4.0], draws=3) == {0}


def test_top_k_above_the_vocabulary_is_all_of_it():
    assert drawn([1.0, 1.0], **PLAIN | {"top_k": 50}) == {0, 1}


def test_min_p_one_leaves_the_maxima():
    assert drawn([5, 5, 4.99], **PLAIN | {"min_p": 1.0}) == {0, 1}


def test_default_filters_agree_with_the_slow_definition():
    """Top-k 40, then top-p 0.95 of those, then min-p 0.05 of the best."""
    for seed in range(20):
        (row,) = rows(1, seed=seed)
        order = sorted(range(len(row)), key=lambda i: (-float(row[i]), i))[:40]
        weights = [math.exp(float(row[i])) for i in order]
        kept, mass = set(), 0.0
        for token, weight in zip(order, weights, strict=True):
            if mass < 0.95 * sum(weights) and weight >= 0.05 * weights[0]:
                kept.add(token)
            mass += weight
        assert drawn(row, draws=600, temperature=3.0) == kept


def test_columns_beyond_the_vocabulary_are_not_tokens():
    logits = np.float32([[1, 2, 9]])
    assert sample(Sampler(Letters(2)), logits, [request(temperature=0.0)]) == [1]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("row", [[NAN, 0, 1, -9], [0, NAN, 8, -9], [-INF, NAN, 2, -INF]])
def test_a_number_that_is_none_is_never_chosen(row, temperature, caplog):
    with caplog.at_level(logging.WARNING):
        assert drawn(row, **PLAIN | {"min_p": 0.5}, temperature=temperature) == {2}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_plus_infinity_leaves_only_those_tokens(temperature):
    expected = {1} if temperature == 0.0 else {1, 3}
    assert drawn([9, INF, NAN, INF, -INF], temperature=temperature) == expected


@pytest.mark.parametrize("row", [[-INF] * 4, [NAN] * 4, [-INF, NAN, -INF, NAN]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("penalty", [1.0, 1.2])
def test_a_row_without_any_number_is_an_error_and_never_token_zero(row, temperature, penalty):
    own = request(temperature=temperature, repetition_penalty=penalty)
    with pytest.raises(EngineError, match="no usable number for any of its 4 tokens"):
        sample(Sampler(Letters(4)), np.float32([row]), [own])


def test_broken_numbers_stay_broken_under_penalties():
    logits = np.float32([[NAN, 1.0, -INF]])
    own = request([0, 2], temperature=0.0, repetition_penalty=1.5)
    assert sample(Sampler(Letters(3)), logits, [own]) == [1]


def test_the_logits_are_left_as_they_were():
    """They may be the model's own memory, and may be read-only."""
    logits = rows(6)
    logits[4, 10], logits[5, 10] = NAN, INF
    logits.setflags(write=False)
    requests = [
        request(temperature=0.0),
        request(),
        request(repetition_penalty=1.3, presence_penalty=1.0),
        request(top_k=0, top_p=0.5),
        request(repetition_penalty=1.3),
        request(),
    ]
    before = logits.copy()
    sample(Sampler(Letters(300)), logits, requests)
    assert np.array_equal(logits, before, equal_nan=True)


@pytest.mark.parametrize("penalty", [1.0, 1.2])
def test_a_seed_gives_the_same_tokens_alone_and_beside_others(penalty):
    own = {"seed": 42, "temperature": 1.5, "repetition_penalty": penalty}
    alone = generate(Sampler(Letters(300)), request(**own), 30)
    others = [request(seed=42), request(), request(temperature=0.0)]
    assert generate(Sampler(Letters(300)), request(**own), 30, others) == alone
    assert generate(Sampler(Letters(300)), request(**own | {"seed": 43}), 30) != alone


def test_without_a_seed_two_requests_differ():
    sampler = Sampler(Letters(300))
    own = {"temperature": 2.0, **PLAIN}
    assert generate(sampler, request(**own), 30) != generate(sampler, request(**own), 30)


def test_a_forgotten_request_starts_anew():
    sampler, own = Sampler(Letters(300)), request(seed=1, temperature=2.0, repetition_penalty=1.2)
    first = generate(sampler, own, 10)
    sampler.forget(own.request_id)
    sampler.forget(own.request_id)
    del own.token_ids[1:]
    assert generate(sampler, own, 10) == first
