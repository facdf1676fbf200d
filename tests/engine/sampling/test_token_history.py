"""The array follows the list."""

import numpy as np

from engine.sampling.token_history import TokenHistory


def test_it_has_what_the_list_has():
    generator = np.random.default_rng(1)
    history, tokens = TokenHistory(), []
    for _ in range(100):
        tokens.extend(generator.integers(0, 99, int(generator.integers(0, 20))).tolist())
        history.follow(tokens)
        assert history.tokens.tolist() == tokens


def test_a_copy_goes_its_own_way():
    history = TokenHistory()
    history.follow([1, 2])
    other = history.copy()
    history.follow([1, 2, 3])
    other.follow([1, 2, 4])
    assert (history.tokens.tolist(), other.tokens.tolist()) == ([1, 2, 3], [1, 2, 4])
