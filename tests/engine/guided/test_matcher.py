"""Where an answer stands in its form, and that a way to the end is one."""

import json
import random
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from engine.errors import GrammarFailed
from engine.guided.grammar import GrammarKind
from engine.guided.matcher import CLOSING_SECONDS
from tests.engine.guided.forms import BYTES, accepts, after, compiled, of_schema

SCHEMAS: list[Any] = [
    {},
    {"type": "object"},
    {"type": "number"},
    {"type": "array", "minItems": 3, "items": {"type": ["string", "null"], "minLength": 2}},
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 4},
            "born": {"type": "string", "format": "date"},
            "score": {"type": "number", "minimum": 0.5, "maximum": 9},
            "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "required": ["name", "born", "score", "tags"],
    },
]
every_schema = pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))


@every_schema
@pytest.mark.parametrize("seed", range(8))
def test_from_wherever_an_answer_has_got_to_the_way_leads_to_an_end(schema: Any, seed: int) -> None:
    choose = random.Random(seed)
    form = of_schema(schema)
    matcher = form.matcher()
    written: list[int] = []
    for _ in range(choose.randrange(120)):
        allowed = BYTES.allowed(matcher.fill_bitmask()).nonzero()[0]
        token_id = int(choose.choice(list(allowed)))
        if token_id in BYTES.end_ids:
            break
        matcher.accept(token_id)
        written.append(token_id)
        if matcher.is_terminated:
            break
    way = matcher.closing(200, 20.0)
    assert way is not None
    assert matcher.closing(len(way), 20.0) == way
    text = bytes([*written, *way]).decode("utf-8", "replace")
    assert matcher.is_terminated or accepts(form, text) or "\ufffd" in text
    if "\ufffd" not in text:
        json.loads(text)


def test_a_way_that_is_too_long_is_none() -> None:
    matcher = of_schema({"type": "string", "minLength": 10}).matcher()
    assert matcher.closing(11, 20.0) is None
    assert matcher.closing(12, 20.0) is not None


def test_the_end_of_a_form_that_is_long_however_it_ends_is_found() -> None:
    names = [f"part {number}" for number in range(300)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 2} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    way = of_schema(schema).matcher().closing(10_000, 20.0)
    assert way is not None
    assert list(json.loads(bytes(way))) == names


def test_closing_leaves_the_state_as_it_was() -> None:
    form = of_schema(SCHEMAS[4])
    matcher, other = after(form, '{"name":"An'), after(form, '{"name":"An')
    assert matcher is not None and other is not None
    matcher.closing(200, 20.0)
    assert np.array_equal(matcher.fill_bitmask(), other.fill_bitmask())


def test_only_what_may_come_is_left_of_a_row() -> None:
    matcher = compiled(GrammarKind.CHOICE, '["yes", "no"]').matcher()
    row = np.linspace(0, 1, BYTES.num_tokens, dtype=np.float32)
    restricted = matcher.restrict(row)
    assert np.isfinite(restricted).nonzero()[0].tolist() == sorted(b"ny")
    assert restricted[ord("y")] == row[ord("y")]


def test_a_token_that_may_not_come_fails_and_is_told() -> None:
    matcher = compiled(GrammarKind.CHOICE, '["yes"]').matcher()
    with pytest.raises(GrammarFailed, match="simpler form"):
        matcher.accept(ord("x"))


def test_an_end_is_allowed_where_the_form_is_complete_and_nowhere_else() -> None:
    matcher = compiled(GrammarKind.REGEX, "[0-9]{2,4}").matcher()
    ends = []
    for byte in b"1234":
        ends.append(bool(BYTES.allowed(matcher.fill_bitmask())[BYTES.end_ids[0]]))
        assert ends[-1] == matcher.is_accepting
        matcher.accept(byte)
    assert ends == [False, False, True, True]
    assert matcher.is_terminated


@pytest.mark.parametrize(
    ("before", "digit_allowed"),
    [("1" * 17, True), ("1" * 18, False), ("1." + "1" * 18, False), ("1e12", False), ("1e1", True)],
)
def test_a_number_does_not_go_on_for_ever(before: str, digit_allowed: bool) -> None:
    matcher = after(of_schema({"type": "number"}), before)
    assert matcher is not None
    row = np.zeros(BYTES.num_tokens, np.float32)
    assert np.isfinite(matcher.restrict(row)[ord("1")]) == digit_allowed


def test_digits_in_a_string_are_no_number() -> None:
    schema = {"type": "string", "pattern": "^[0-9]{30}$"}
    matcher = after(of_schema(schema), '"' + "1" * 25)
    assert matcher is not None
    assert np.isfinite(matcher.restrict(np.zeros(BYTES.num_tokens, np.float32))[ord("1")])


def test_a_search_that_finds_nothing_ends_in_time() -> None:
    matcher = compiled(GrammarKind.REGEX, "[a-z ]{500}(x|y)[0-9]{500}!").matcher()
    began = perf_counter()
    matcher.closing(100)
    # Far below what no deadline would take, and above what a busy machine adds.
    assert perf_counter() - began < CLOSING_SECONDS + 5.0
