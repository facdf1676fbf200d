"""Thirty schemas, each of another kind of what people ask for."""

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
