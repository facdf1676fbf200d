"""JSON Schemas before they are compiled."""

import json
from typing import Any

import pytest

from engine.errors import GrammarError
from engine.guided.schema import MAX_BYTES, MAX_DEPTH, MAX_PROPERTIES, parts, read_schema

NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}


def test_nullable_and_options_for_the_compiler_are_rewritten() -> None:
    schema = {
        "x-guidance": {"lenient": True},
        "properties": {"a": {"type": "string", "nullable": True, "enum": ["x"]}},
        "const": {"x-guidance": 1},
    }
    assert read_schema(json.dumps(schema)) == {
        "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}},
        "const": {"x-guidance": 1},
    }


def test_the_order_of_keys_is_kept() -> None:
    names = [f"k{i}" for i in range(20, 0, -1)]
    schema = read_schema(json.dumps({"properties": {name: {} for name in names}}))
    assert list(schema["properties"]) == names


def test_every_part_is_found_at_its_pointer() -> None:
    schema = {"properties": {"a/b~": {"items": [{"not": {}}]}}, "anyOf": [True, {"title": "x"}]}
    assert [path for path, _ in parts(schema)] == [
        "#",
        "#/properties/a~1b~0",
        "#/properties/a~1b~0/items/0",
        "#/properties/a~1b~0/items/0/not",
        "#/anyOf/1",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/node", "$defs": {"node": {**NODE, "required": ["next"]}}},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": []},
        {"properties": {"a": False}, "required": ["a"], "type": "object"},
        {"anyOf": [{"$ref": "#"}, {"type": "array", "minItems": 1, "items": {"$ref": "#"}}]},
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        {"type": "array", "minItems": 2, "prefixItems": [{"type": "null"}, {"$ref": "#"}]},
    ],
    ids=json.dumps,
)
def test_what_needs_itself_without_end_is_refused(schema: object) -> None:
    with pytest.raises(GrammarError, match="never be satisfied"):
        read_schema(json.dumps(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        {"anyOf": [{"type": "null"}, {"type": "array", "minItems": 1, "items": {"$ref": "#"}}]},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": ["null", "array"], "minItems": 1, "items": {"$ref": "#"}},
    ],
    ids=json.dumps,
)
def test_what_may_refer_to_itself_and_may_end_is_taken(schema: object) -> None:
    assert read_schema(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{", "line 1, column 2"),
        ('{"a":\n NaN}', "NaN"),
        ("[]", "must be a JSON object"),
        ("false", "no answer satisfies"),
        ('"x"', "must be a JSON object"),
        (" " * (MAX_BYTES + 1), "at most"),
        ('{"items":' * (MAX_DEPTH + 1) + "{}" + "}" * (MAX_DEPTH + 1), "levels deep"),
        ("[" * 100_000, "no JSON"),
        ('{"const": "\\ud800"}', "half a character"),
        (
            json.dumps({"properties": {str(i): {} for i in range(MAX_PROPERTIES + 1)}}),
            "1,001 entries in 'properties' at the top,",
        ),
    ],
    ids=range(10),
)
def test_what_is_no_schema_or_too_large_is_one_sentence(source: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said) as refusal:
        read_schema(source)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "nullable": True, "enum": 5},
        {"allOf": 5, "anyOf": "x", "oneOf": {}},
        {"type": 7, "required": 7, "properties": [], "items": 7, "minItems": "x"},
        {"type": "array", "minItems": 1, "prefixItems": 7},
        {"$ref": 7, "$defs": []},
    ],
    ids=json.dumps,
)
def test_keywords_of_the_wrong_kind_are_left_to_the_compiler(schema: object) -> None:
    read_schema(json.dumps(schema))


def test_true_is_any_answer() -> None:
    assert read_schema("true") == {}
