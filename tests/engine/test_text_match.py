"""How much of a text another one ends with, against looking at all of it."""

import numpy as np
import pytest

from engine.text_match import TextMatch


@pytest.mark.parametrize("seed", range(40))
def test_all_lengths_of_a_match_are_those_that_are_seen(seed: int) -> None:
    generator = np.random.default_rng(seed)
    text = bytes(generator.integers(97, 99, int(generator.integers(1, 8))))
    match, fed = TextMatch(text), b""
    for byte in generator.integers(97, 99, 100).tolist():
        complete = match.advance(byte)
        fed += bytes([byte])
        ends = [n for n in range(len(text), 0, -1) if fed.endswith(text[:n])]
        assert list(match.lengths()) == ends
        assert complete == fed.endswith(text)


def test_characters_are_matched_as_bytes_are() -> None:
    match = TextMatch("ää")
    assert [match.advance(each) for each in "xäääy"] == [False, False, True, True, False]


def test_a_copy_goes_its_own_way() -> None:
    match = TextMatch(b"ab")
    match.advance(97)
    other = match.copy()
    assert other.advance(98) and match.length == 1
