"""The form of an answer as other programs write it."""

import json
from typing import Any

import pytest

from app.api.answer_form import read_form
from engine.errors import UsageError
from engine.guided.grammar import Grammar, GrammarKind

SCHEMA = {"type": "object", "properties": {"b": {}, "a": {"const": "é"}}}
WRITTEN = json.dumps(SCHEMA, ensure_ascii=False)
OF_SCHEMA = Grammar(GrammarKind.JSON_SCHEMA, WRITTEN)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ({}, None),
        ({"response_format": None, "grammar": "", "structured_outputs": None}, None),
        ({"response_format": {"type": "text"}}, None),
        (
            {"response_format": {"type": "json_object"}},
            Grammar(GrammarKind.JSON_SCHEMA, '{"type": "object"}'),
        ),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, OF_SCHEMA),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            OF_SCHEMA,
        ),
        ({"grammar": 'root ::= "a"'}, Grammar(GrammarKind.GBNF, 'root ::= "a"')),
        ({"grammar": 'start: "a"'}, Grammar(GrammarKind.LARK, 'start: "a"')),
        ({"structured_outputs": {"json": SCHEMA, "regex": None}}, OF_SCHEMA),
        ({"structured_outputs": {"json": WRITTEN}}, OF_SCHEMA),
        ({"structured_outputs": {"regex": "a+"}}, Grammar(GrammarKind.REGEX, "a+")),
        (
            {"structured_outputs": {"choice": ["é", "b"]}},
            Grammar(GrammarKind.CHOICE, '["é", "b"]'),
        ),
        (
            {"structured_outputs": {"grammar": 'root ::= "a"'}},
            Grammar(GrammarKind.GBNF, 'root ::= "a"'),
        ),
    ],
)
def test_every_way_to_write_it_is_understood(body: dict[str, Any], form: Grammar | None) -> None:
    assert read_form(body) == form


@pytest.mark.parametrize(
    ("strict", "is_approximate"),
    [({}, False), ({"strict": True}, False), ({"strict": False}, True)],
)
def test_only_whoever_asks_for_less_gets_it(strict: dict[str, bool], is_approximate: bool) -> None:
    schema = {"name": "x", "schema": {"uniqueItems": True}, **strict}
    form = read_form({"response_format": {"type": "json_schema", "json_schema": schema}})
    assert form is not None and form.is_approximate == is_approximate


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"response_format": "json"}, "must be an object"),
        ({"response_format": {"type": "xml"}}, "text, json_object or json_schema"),
        ({"response_format": {"type": "json_schema"}}, "must be a JSON Schema"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {}, "strict": 1},
                }
            },
            "strict must be true or false",
        ),
        ({"grammar": 7}, "must be a text"),
        ({"structured_outputs": []}, "must be an object"),
        ({"structured_outputs": {}}, "one of json, regex"),
        ({"structured_outputs": {"json": {}, "regex": "a"}}, "one of json, regex"),
        ({"structured_outputs": {"structural_tag": "a"}}, "structural_tag is not supported"),
        ({"structured_outputs": {"regex": 7}}, "regex must be a text"),
        ({"response_format": {"type": "json_object"}, "grammar": "x"}, "can have one form"),
    ],
)
def test_what_is_not_understood_is_refused(body: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_form(body)
