"""JSON that may be cut anywhere is read as far as it goes, and laid out without a change."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ui.json_text import Exact, Unreadable, laid_out, read, read_beginning

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
CONTAINERS = st.lists(VALUES, min_size=1, max_size=3) | st.dictionaries(
    st.text(max_size=4), VALUES, min_size=1, max_size=3
)


def without_spaces(text: str) -> str:
    parts = re.findall(r'"(?:[^"\\]|\\.)*"?|\S', text, re.DOTALL)
    return "".join(parts)


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether `part` says nothing that `whole` does not."""
    if isinstance(part, dict):
        return all(name in whole and is_beginning(each, whole[name]) for name, each in part.items())
    if isinstance(part, list):
        return all(is_beginning(each, whole[place]) for place, each in enumerate(part))
    if isinstance(part, str) and not isinstance(part, Exact):
        return isinstance(whole, str) and whole.startswith(part)
    return bool(part == whole)


@settings(deadline=None)
@given(CONTAINERS, st.booleans(), st.sampled_from([None, 2]))
def test_every_beginning_is_a_beginning_of_the_whole(
    value: Any, is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    whole = read(text)
    for end in range(1, len(text) + 1):
        part = read_beginning(text[:end])
        # Half of a pair of escapes is half a character until the other one comes.
        if "\\ud" not in text[:end].lower():
            assert is_beginning(part, whole), text[:end]
    assert read_beginning(text) == whole


@given(CONTAINERS, st.data())
def test_laid_out_nothing_but_spaces_differs(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text)))]
    assert without_spaces(laid_out(cut)) == without_spaces(cut)
    assert json.loads(laid_out(text)) == value


def test_it_is_laid_out_as_people_write_it() -> None:
    text = '{"a":1.0,"b":[],"c":{},"d":[1e5,"x, {y}"]}'
    assert laid_out(text) == (
        '{\n  "a": 1.0,\n  "b": [],\n  "c": {},\n  "d": [\n    1e5,\n    "x, {y}"\n  ]\n}'
    )


def test_half_a_character_is_marked_and_a_whole_one_is_kept() -> None:
    assert read(r'{"\ud83d": "a\ude00", "b": "\ud83d\ude00"}') == {"\ufffd": "a\ufffd", "b": "😀"}
    assert read_beginning(r'["\ud83d') == ["\ufffd"]
    assert read(r'["\\ud83d"]') == [r"\ud83d"]


def test_numbers_are_kept_as_they_are_spelled() -> None:
    assert read('{"a": 2.80, "b": 1E5, "c": 12345678901234567890}') == {
        "a": "2.80",
        "b": "1E5",
        "c": "12345678901234567890",
    }


@pytest.mark.parametrize("text", ["", " ", "]", "a", '{"a"}', "[1]]", '{"a": 1} x', "nul"])
def test_what_is_no_json_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text)


@pytest.mark.parametrize("text", ["", "]", "}", "[" * 100_000])
def test_what_has_no_beginning_cannot_be_read_either(text: str) -> None:
    with pytest.raises(Unreadable):
        read_beginning(text)
