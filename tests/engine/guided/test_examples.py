"""Texts that satisfy a pattern, found without a search."""

import re

import pytest

from engine.guided.examples import (
    MOST_CHARACTERS,
    closing_first,
    example_of,
    examples_of,
    literals_in_lark,
)

PATTERNS = [
    "",
    "abc",
    "^a*b+c?$",
    "^[A-Z]{2,3}-[0-9]{4}$",
    r"\d{4}-\d{2}T\d{2}.\d{6}",
    "^(foo|ba|quux)(/[^/]+)*$",
    r"^[^a-zA-Z0-9]\w\s\S\D$",
    r"^[]a-]$",
    r"^[\]\-\d_]+?$",
    r"^\x41A\.\/\\$",
    "^(?:a|(b|)){3}$",
    r"\bword\b",
    r"[^\d\s]",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_satisfies_the_pattern(pattern: str) -> None:
    example = example_of(pattern)
    assert example is not None
    assert re.search(pattern, example)


@pytest.mark.parametrize("pattern", ["(?=a)", r"\p{L}", "(a", "[a", "a{1000}", "(?<n>a)", "a{x}"])
def test_what_is_not_understood_gives_none(pattern: str) -> None:
    assert example_of(pattern) is None


def test_a_long_one_gives_none() -> None:
    assert example_of("(abc){100}") is None
    assert MOST_CHARACTERS < 300


def test_every_part_of_a_schema_gives_its_own_once() -> None:
    schema = {
        "properties": {
            "a": {"pattern": "^x{2}$"},
            "b": {"format": "date"},
            "c": {"items": {"format": "date"}},
            "d": {"format": "unheard of"},
            "e": {"pattern": 7},
        }
    }
    assert examples_of(schema) == ("xx", "2000-01-01")


def test_the_texts_of_a_grammar_are_found_and_those_that_end_something_come_first() -> None:
    source = 'start: "{" pair ("," pair)* "}"\npair: "\\"" /[^"]+/ "\\"" | "null" | "\\q"'
    assert closing_first(literals_in_lark(source)) == ['"', "}", ",", "{", "null"]
