"""The last look at an answer whose form could not be enforced as a whole."""

import json
import re

import pytest

from engine.errors import GrammarError
from engine.guided.validator import AnswerValidator

UNIQUE = json.dumps({"type": "array", "uniqueItems": True, "items": {"format": "date"}})


@pytest.mark.parametrize("text", ["[]", "[1, 2]", '["2026-11-30", "2026-12-01"]'])
def test_what_is_valid_has_no_fault(text: str) -> None:
    assert AnswerValidator(UNIQUE).fault_of(text) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1, 1]", r"non-unique elements at the top$"),
        ('["2026-11-31"]', r"is not a 'date' at \$\[0\]"),
        ("{}", "not of type 'array'"),
        ("[1,", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("", "no JSON"),
    ],
    ids=range(6),
)
def test_a_fault_is_told_with_its_place(text: str, fault: str) -> None:
    assert re.search(fault, AnswerValidator(UNIQUE).fault_of(text))


def test_nothing_is_fetched() -> None:
    schema = json.dumps({"$ref": "http://127.0.0.1:9/schema.json"})
    assert "could not be checked" in AnswerValidator(schema).fault_of("1")


@pytest.mark.parametrize("schema", [{"pattern": "\\p{L}"}, {"type": 7}, {"properties": 7}])
def test_what_the_validator_cannot_read_is_no_traceback(schema: object) -> None:
    for text in ('"x"', "{}"):
        AnswerValidator(json.dumps(schema)).fault_of(text)


def test_a_schema_of_no_known_language_is_refused() -> None:
    with pytest.raises(GrammarError, match="schema"):
        AnswerValidator('{"$schema": 5}')
