"""Thirty schemas, each of another kind of what people ask for."""

import random
from typing import Any

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NODE = {
    "type": "object",
    "properties": {"value": WHOLE, "children": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
    "required": ["value"],
    "additionalProperties": False,
}


def an_object(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": required, "required": [*required], **more}


CLOSED = {"additionalProperties": False}

SCHEMAS: dict[str, Any] = {
    "anything": {},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "text": TEXT,
    "whole number": WHOLE,
    "number": {"type": "number"},
    "yes or no": {"type": "boolean"},
    "nothing": {"type": "null"},
    "constant": {"const": {"a": [1, 'é"\\']}},
    "one of": {"enum": ["red", "green", 7, None, "</s>", "<|im_end|>"]},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "tens": {"type": "integer", "multipleOf": 10, "minimum": 0, "maximum": 1000},
    "short text": {"type": "string", "minLength": 3, "maxLength": 8},
    "plate": {"type": "string", "pattern": "^[A-Z]{1,3}-[0-9]{2,4}$"},
    "contains a year": {"type": "string", "pattern": "\\d{4}"},
    "day": {"type": "string", "format": "date"},
    "moment": {"type": "string", "format": "date-time"},
    "e-mail": {"type": "string", "format": "email"},
    "uuid": {"type": "string", "format": "uuid"},
    "some texts": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 5},
    "pair": {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False, "minItems": 2},
    "person": an_object({"name": TEXT, "age": WHOLE, "tags": {"type": "array"}}, **CLOSED),
    "optional": {"type": "object", "properties": {"a": TEXT, "b": WHOLE, "c": {}}, **CLOSED},
    "table of numbers": {"type": "object", "additionalProperties": {"type": "number"}},
    "one kind or another": {"anyOf": [an_object({"a": TEXT}, **CLOSED), WHOLE, {"type": "null"}]},
    "either": {"oneOf": [{"type": "boolean"}, {"type": "array", "items": WHOLE}]},
    "both": {"allOf": [an_object({"a": TEXT}), an_object({"b": WHOLE})]},
    "nullable": an_object({"a": {"type": "string", "nullable": True, "enum": ["x"]}}, **CLOSED),
    "tree": {"$ref": "#/$defs/n", "$defs": {"n": NODE}},
}

NAMES = ("name", "city", "price", "tags", "born", "is_open", "notes", "items", "größe", "a b", "id")


def made_schemas(count: int) -> dict[str, Any]:
    """As many more, made by chance from what schemas are made of; always the same ones."""
    return {f"made {number}": made_schema(random.Random(number)) for number in range(count)}


def made_schema(choose: random.Random, depth: int = 3) -> Any:
    """At most so many levels deep."""
    plain = [_text, _number, _choice, lambda _: {"type": choose.choice(["boolean", "null"])}]
    kind = choose.randrange(10)
    if depth == 0 or kind < 3:
        return choose.choice(plain)(choose)
    if kind < 7:
        return _object(choose, depth)
    if kind < 9:
        return _list(choose, depth)
    return {"anyOf": [made_schema(choose, depth - 1) for _ in range(choose.randint(2, 3))]}


def _text(choose: random.Random) -> dict[str, Any]:
    return TEXT | choose.choice(
        [
            {},
            {"maxLength": choose.randint(1, 40)},
            {"minLength": choose.randint(1, 5), "maxLength": choose.randint(5, 60)},
            {"pattern": choose.choice(["^[A-Z][a-z]{2,9}$", "[0-9]{3}", "^(x|yy)+$", "^[^ ]{4}$"])},
            {"format": choose.choice(["date", "time", "date-time", "email", "uuid", "ipv4"])},
        ]
    )


def _number(choose: random.Random) -> dict[str, Any]:
    least = choose.randint(-1000, 1000)
    kind = {"type": choose.choice(["integer", "number"])}
    bounds = [{}, {"minimum": least}, {"minimum": least, "maximum": least + choose.randint(0, 500)}]
    return kind | choose.choice(bounds)


def _choice(choose: random.Random) -> dict[str, Any]:
    values = ["red", "green", "", 'a "b"', 7, 1.5, None, True, "é\n"]
    return choose.choice([{"enum": choose.sample(values, 4)}, {"const": choose.choice(values)}])


def _object(choose: random.Random, depth: int) -> dict[str, Any]:
    names = choose.sample(NAMES, choose.randint(1, 5))
    more = choose.choice([{"additionalProperties": False}, {"additionalProperties": WHOLE}, {}])
    return {
        "type": "object",
        "properties": {name: made_schema(choose, depth - 1) for name in names},
        "required": [name for name in names if choose.random() < 0.6],
        **more,
    }


def _list(choose: random.Random, depth: int) -> dict[str, Any]:
    bounds = [{}, {"maxItems": choose.randint(1, 5)}, {"minItems": choose.randint(1, 3)}]
    return {
        "type": "array",
        "items": made_schema(choose, depth - 1),
        **choose.choice(bounds),
    }
