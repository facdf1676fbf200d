"""What is asked of a vocabulary, against looking at every token."""

import numpy as np
import pytest

from engine.sampling.vocabulary import SamplingVocabulary
from tests.engine.sampling.rows import Letters


@pytest.mark.parametrize("seed", range(10))
def test_tokens_that_begin_with_or_have_a_text(seed):
    generator = np.random.default_rng(seed)
    texts = [
        "".join(generator.choice(list("abc\n"), int(generator.integers(0, 5)))) for _ in "x" * 90
    ]
    vocabulary = SamplingVocabulary(Letters(texts=texts))
    for text in ["a", "b", "ab", "aa", "bca", "\n", "abca", "cc"]:
        beginning = [i for i, each in enumerate(texts) if each.startswith(text)]
        having = [i for i, each in enumerate(texts) if text in each]
        assert sorted(vocabulary.starting_with(text.encode()).tolist()) == beginning
        assert vocabulary.containing(text.encode()).tolist() == having


def test_ends_and_line_breaks():
    texts = ["a", "\n", "", "\r\n", "\n\n", "a\n", " \n"]
    vocabulary = SamplingVocabulary(Letters(texts=texts, ends=(2, 0)))
    assert vocabulary.ends.tolist() == [0, 2]
    assert vocabulary.line_breaks.tolist() == [1, 3, 4]
    assert vocabulary.ends_and_line_breaks.tolist() == [0, 1, 2, 3, 4]
