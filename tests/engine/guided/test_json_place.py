"""Where in a JSON text one is, however it is cut."""

import json
import random

import pytest

from engine.guided.json_place import MOST_DIGITS, MOST_EXPONENT_DIGITS, JsonPlace


def place_after(text: str) -> JsonPlace:
    place = JsonPlace()
    place.feed(text.encode())
    return place


@pytest.mark.parametrize(
    ("text", "in_string"),
    [("", False), ('{"', True), ('{"a"', False), ('"\\"', True), ('"\\\\"', False), ('"é', True)],
)
def test_it_knows_whether_a_string_is_open(text: str, in_string: bool) -> None:
    assert place_after(text).in_string == in_string


@pytest.mark.parametrize(
    ("text", "num_left"),
    [
        ("[1", MOST_DIGITS - 1),
        ("[12.", MOST_DIGITS),
        ("[12.345", MOST_DIGITS - 3),
        ("[1e", MOST_EXPONENT_DIGITS),
        ("[1e-", MOST_EXPONENT_DIGITS),
        ("[1E+30", 0),
        ("[" + "1" * 30, 0),
        ('["1234", 5', MOST_DIGITS - 1),
        ("[1e5,", MOST_DIGITS),
    ],
)
def test_it_counts_how_many_digits_a_number_may_have_yet(text: str, num_left: int) -> None:
    assert place_after(text).num_digits_left == num_left


@pytest.mark.parametrize("seed", range(20))
def test_how_a_text_is_cut_changes_nothing(seed: int) -> None:
    choose = random.Random(seed)
    value = {'é"\\': [choose.random() * 10 ** choose.randrange(-30, 30), '\\"1e5'], "b": None}
    text = json.dumps(value, ensure_ascii=bool(seed % 2)).encode()
    cut = choose.randrange(len(text))
    whole, pieces = JsonPlace(), JsonPlace()
    whole.feed(text)
    pieces.feed(text[:cut])
    pieces.feed(text[cut:])
    assert whole == pieces
    assert not whole.in_string
