"""A form that is built field by field is a JSON Schema, and read back from it."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.fields import (
    MOST_FIELDS,
    Field,
    FieldKind,
    Fields,
    fields_as_json,
    fields_from_json,
    fields_of,
)
from engine.errors import GrammarError
from engine.guided.compiler import compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from tests.engine.guided.forms import BYTES, accepts

EACH_KIND = Fields(
    tuple(
        Field(
            name=kind.value,
            kind=kind,
            meaning="what it is",
            is_needed=kind is not FieldKind.DATE,
            choices=("red", "blue") if kind is FieldKind.ONE_OF else (),
        )
        for kind in FieldKind
    )
)
names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
kinds = st.sampled_from([kind for kind in FieldKind if kind is not FieldKind.ONE_OF])
some_fields = st.lists(
    st.builds(Field, name=names, kind=kinds, is_needed=st.booleans(), meaning=names),
    min_size=1,
    unique_by=lambda field: field.name,
)


def test_each_kind_is_enforced() -> None:
    compiled = compile_grammar(Grammar(GrammarKind.JSON_SCHEMA, EACH_KIND.source()), BYTES)
    whole = {
        "text": "a",
        "number": 1.5,
        "whole number": 3,
        "yes or no": True,
        "one of": "blue",
        "list of texts": ["a"],
        "date": "2026-02-28",
        "e-mail": "ann@example.org",
    }
    assert accepts(compiled, json.dumps(whole))
    without_date = {name: value for name, value in whole.items() if name != "date"}
    assert accepts(compiled, json.dumps(without_date))
    for name, wrong in {
        "text": 1,
        "number": "1",
        "whole number": 3.5,
        "yes or no": "yes",
        "one of": "green",
        "list of texts": "a",
        "date": "2026-02-30",
        "e-mail": "nobody",
    }.items():
        assert not accepts(compiled, json.dumps({**whole, name: wrong})), name
    without_text = {name: value for name, value in whole.items() if name != "text"}
    assert not accepts(compiled, json.dumps(without_text))
    assert not accepts(compiled, json.dumps({**whole, "more": 1}))


def test_a_list_has_at_least_one_entry() -> None:
    listed = replace(EACH_KIND, fields=(Field(name="a"),), is_list=True)
    compiled = compile_grammar(Grammar(GrammarKind.JSON_SCHEMA, listed.source()), BYTES)
    assert accepts(compiled, '[{"a": "x"}, {"a": "y"}]')
    assert not accepts(compiled, "[]")


@given(some_fields, st.booleans())
def test_fields_come_back_from_their_schema_and_from_the_page(
    fields: list[Field], is_list: bool
) -> None:
    built = Fields(tuple(fields), is_list)
    assert fields_of(built.source()) == built
    assert fields_from_json(fields_as_json(fields)) == built.fields


def test_each_kind_comes_back() -> None:
    assert fields_of(EACH_KIND.source()) == EACH_KIND


@pytest.mark.parametrize(
    "source",
    [
        "",
        "[]",
        "true",
        "{}",
        '{"type": "object", "properties": {}, "required": [], "additionalProperties": false}',
        '{"type": "object", "properties": {"a": {"type": "string"}}, "required": []}',
        '{"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}},'
        ' "required": [], "additionalProperties": false}',
        '{"type": "object", "properties": {"a": {"enum": [1, 2]}},'
        ' "required": [], "additionalProperties": false}',
        '{"type": "object", "properties": {"a": true},'
        ' "required": [], "additionalProperties": false}',
    ],
)
def test_a_schema_of_another_kind_is_no_form(source: str) -> None:
    assert fields_of(source) is None


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ((), "There is no field yet"),
        ((Field(name=" "),), "Field 1 has no name"),
        ((Field(name="a"), Field(name="a")), "rename field 2"),
        ((Field(name="a", kind=FieldKind.ONE_OF, choices=("x",)),), "at least two choices"),
        (tuple(Field(name=str(n)) for n in range(MOST_FIELDS + 1)), "at most 100"),
    ],
)
def test_fields_that_make_no_form_are_told(fields: tuple[Field, ...], fault: str) -> None:
    with pytest.raises(GrammarError, match=fault):
        Fields(fields).source()


def test_what_the_page_writes_is_tidied() -> None:
    (field,) = fields_from_json(
        '[{"name": " eye  colour ", "kind": "one of", "is_needed": false, "meaning": " m ",'
        ' "choices": ["red", " blue", "", "red"]}]'
    )
    assert field == Field(
        name="eye colour",
        kind=FieldKind.ONE_OF,
        is_needed=False,
        meaning="m",
        choices=("red", "blue"),
    )


@pytest.mark.parametrize("text", ["{", "[1]", '[{"name": "a"}]', '{"a": 1}', "[" * 100_000])
def test_what_the_page_never_writes_is_refused(text: str) -> None:
    with pytest.raises(GrammarError, match="could not be read"):
        fields_from_json(text)
