"""Biases, and texts that never appear, however tokens cut them."""

import math

import numpy as np
import pytest

from engine.sampling.bans import BannedPhrases, LogitBias
from engine.sampling.vocabulary import SamplingVocabulary
from tests.engine.sampling.rows import Letters


def test_a_bias_is_added_and_minus_a_hundred_bans():
    row = np.float32([1, 2, 3, 4])
    bias = LogitBias([(3, -100.0), (0, 2.5), (1, -math.inf)])
    bias.apply(row)
    assert row.tolist() == [3.5, -math.inf, 3, -math.inf]
    assert bias.banned.tolist() == [1, 3]


def completing(phrases, texts, tokens, num_prompt_tokens=0):
    banned = BannedPhrases(phrases, SamplingVocabulary(Letters(texts=texts)), num_prompt_tokens)
    banned.follow(tokens)
    return {int(each) for ids in banned.completing() for each in ids}


TEXTS = ["a", "b", "ab", "aba", "bab", "c", "ca", "xabx"]


def test_a_token_that_has_the_phrase_is_banned_at_once():
    assert completing(["ab"], TEXTS, []) == {2, 3, 4, 7}


def test_a_token_that_begins_with_the_rest_is_banned():
    assert completing(["abab"], TEXTS, [0]) == {4}
    assert completing(["abab"], TEXTS, [5, 0, 1]) == {2, 3}
    assert completing(["abab"], TEXTS, [3]) == {1, 4}


def test_the_prompt_is_not_part_of_the_answer():
    assert completing(["abab"], TEXTS, [0], num_prompt_tokens=1) == set()


@pytest.mark.parametrize("seed", range(60))
def test_a_random_text_never_has_a_phrase_and_nothing_else_is_banned(seed):
    """Every token that is not banned leaves a text without a phrase, every banned one does not."""
    generator = np.random.default_rng(seed)
    texts = [*"abé", *("".join(generator.choice(list("abé"), 3)) for _ in range(20))]
    letters = Letters(texts=texts)
    # Half a character may be a token, too.
    letters.texts += ["é".encode()[:1], "é".encode()[1:]]
    letters.num_tokens += 2
    phrases = ["".join(generator.choice(list("abé"), int(generator.integers(2, 6))))]
    phrases.append("".join(generator.choice(list("ab"), 3)))
    vocabulary = SamplingVocabulary(letters)
    banned = BannedPhrases(phrases, vocabulary, 0)
    tokens, text = [], b""
    for _ in range(60):
        banned.follow(tokens)
        forbidden = {int(each) for ids in banned.completing() for each in ids}
        would = {
            token
            for token in range(vocabulary.num_tokens)
            if any(phrase.encode() in text + letters.texts[token] for phrase in phrases)
        }
        assert forbidden == would
        free = sorted(set(range(vocabulary.num_tokens)) - forbidden)
        if not free:
            return
        tokens.append(int(generator.choice(free)))
        text += letters.texts[tokens[-1]]


def test_a_copy_goes_its_own_way():
    vocabulary = SamplingVocabulary(Letters(texts=TEXTS))
    banned = BannedPhrases(["ca"], vocabulary, 0)
    banned.follow([5])
    other = banned.copy()
    other.follow([5, 1])
    assert 0 in banned.completing()[1] and len(other.completing()) == 1
