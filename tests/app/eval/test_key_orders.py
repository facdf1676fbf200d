"""An instance is stopped only if no order of its keys gets to the end."""

import json
from itertools import permutations
from typing import Any

import pytest

from app.eval import key_orders
from app.eval.key_orders import KeyOrders
from engine.guided.compiler import compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from tests.engine.guided.forms import BYTES

PAIR = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "object", "properties": {"x": {"type": "null"}, "y": {"type": "string"}}},
        "c": {"type": "array", "items": {"type": "boolean"}},
    },
    "required": ["a"],
    "additionalProperties": False,
}
EITHER = {"anyOf": [{"$ref": "#/$defs/there"}, {"$ref": "#/$defs/back"}]} | {
    "$defs": {
        name: {
            "type": "object",
            "properties": {key: {"const": key + name} for key in keys},
            "required": list(keys),
            "additionalProperties": False,
        }
        for name, keys in (("there", "ab"), ("back", "ba"))
    }
}


def orders(schema: Any) -> KeyOrders:
    return KeyOrders(compile_grammar(Grammar(GrammarKind.JSON_SCHEMA, json.dumps(schema)), BYTES))


def test_every_order_of_a_valid_object_is_one() -> None:
    value = {"a": 1, "b": {"y": "ü", "x": None}, "c": [True, False]}
    for names in permutations(value):
        assert orders(PAIR).accept({name: value[name] for name in names})


def test_each_part_of_a_union_has_its_own_order() -> None:
    for name in ("there", "back"):
        assert orders(EITHER).accept({"a": "a" + name, "b": "b" + name})
    assert not orders(EITHER).accept({"a": "athere", "b": "bback"})


@pytest.mark.parametrize(
    "value", [{}, {"b": {}}, {"a": "1"}, {"a": 1, "d": 1}, {"c": [1], "a": 1}, [], 1, "a"], ids=str
)
def test_no_order_makes_an_invalid_value_valid(value: Any) -> None:
    assert not orders(PAIR).accept(value)


def test_what_takes_too_long_to_find_counts_as_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"c": [True] * 20, "a": 1}
    assert orders(PAIR).accept(value)
    monkeypatch.setattr(key_orders, "MOST_STEPS", 10)
    assert not orders(PAIR).accept(value)
