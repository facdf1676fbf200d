"""Guesses from what was said, against a plain search through all of it."""

import random
from collections.abc import Sequence

import pytest

from engine.sampling.lookup import LONGEST_MATCH, MOST_PLACES, NGRAM, PromptLookup


def guess_by_search(token_ids: Sequence[int], most: int) -> tuple[list[int], int]:
    """Among the newest places where the last tokens stood before: the longest match."""
    last = list(token_ids[-NGRAM:])
    places = [
        end
        for end in range(len(token_ids) - 1, NGRAM - 1, -1)
        if list(token_ids[end - NGRAM : end]) == last
    ]
    best: tuple[list[int], int] = ([], 0)
    for end in places[:MOST_PLACES]:
        length = 0
        while (
            length < min(end, LONGEST_MATCH)
            and token_ids[end - 1 - length] == token_ids[-1 - length]
        ):
            length += 1
        if length > best[1]:
            best = (list(token_ids[end : end + most]), length)
    return best


@pytest.mark.parametrize("seed", range(30))
def test_a_guess_is_what_a_search_through_everything_finds(seed: int) -> None:
    random_ = random.Random(seed)
    token_ids: list[int] = []
    lookup = PromptLookup()
    while len(token_ids) < 300:
        new = random_.choices(range(random_.choice([2, 3, 8])), k=random_.randrange(1, 9))
        token_ids += new
        lookup.extend(new)
        guessed, length = lookup.guess(5)
        assert (list(guessed), length) == guess_by_search(token_ids, 5)


def test_nothing_is_guessed_of_words_that_are_new() -> None:
    lookup = PromptLookup()
    assert lookup.guess(5) == ((), 0)
    lookup.extend(range(100))
    assert lookup.guess(5) == ((), 0)


def test_of_equal_places_the_newest_is_taken() -> None:
    lookup = PromptLookup()
    lookup.extend([1, 2, 3, 10, 1, 2, 3, 11, 1, 2, 3])
    guessed, _ = lookup.guess(1)
    assert list(guessed) == [11]


def test_the_longer_match_is_taken_though_it_is_older() -> None:
    lookup = PromptLookup()
    lookup.extend([9, 1, 2, 3, 10, 8, 1, 2, 3, 11, 9, 1, 2, 3])
    guessed, length = lookup.guess(1)
    assert (list(guessed), length) == ([10], 4)
