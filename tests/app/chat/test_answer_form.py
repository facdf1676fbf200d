"""Forms of answers as values, and how an answer came out in one."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.chat.answer_form import AnswerForm, MadeIn, Medium, Outcome
from app.chat.message import Message, MessageState, Role
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import ready_forms

FORMS = [
    AnswerForm(Grammar(GrammarKind.REGEX, "[0-9]+")),
    AnswerForm(Grammar(GrammarKind.JSON_SCHEMA, "{}", True), "Title", "Said.", Medium.JSON),
    *map(AnswerForm.of_ready, ready_forms().values()),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.title or form.grammar.kind.value)
def test_a_form_comes_back_from_its_json(form: AnswerForm) -> None:
    assert AnswerForm.from_json(json.loads(json.dumps(form.as_json()))) == form
    for made_in in (MadeIn(form), MadeIn(form, True), MadeIn(form, True, "it is no JSON")):
        assert MadeIn.from_json(json.loads(json.dumps(made_in.as_json()))) == made_in


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},
        {"kind": "json"},
        {"kind": "regex", "source": 1},
        {"kind": "regex", "source": "a", "is_approximate": "yes"},
        {"kind": "regex", "source": "a", "examples": "a"},
        {"kind": "regex", "source": "a", "examples": [1]},
        {"kind": "regex", "source": "a", "title": []},
        {"kind": "regex", "source": "a", "medium": "video"},
        {"kind": "choice", "source": "yes or no"},
        {"kind": "choice", "source": "[1]"},
        {"kind": "choice", "source": "[" * 100_000},
    ],
)
def test_what_is_no_form_is_refused(found: Any) -> None:
    with pytest.raises(ValueError):
        AnswerForm.from_json(found)
    with pytest.raises(ValueError):
        MadeIn.from_json({"form": found})


@pytest.mark.parametrize(
    "found", [None, {}, {"form": {"kind": "regex", "source": "a"}, "is_checked": 1}]
)
def test_what_no_answer_was_made_in_is_refused(found: Any) -> None:
    with pytest.raises(ValueError):
        MadeIn.from_json(found)


def test_a_ready_made_form_brings_its_examples_and_what_it_makes() -> None:
    csv, table = (AnswerForm.of_ready(ready_forms()[name]) for name in ("csv", "table-as-json"))
    assert (csv.title, csv.medium, table.medium) == ("CSV with a header", Medium.CSV, Medium.JSON)
    assert csv.grammar.examples == ready_forms()["csv"].accepted


def test_a_schema_of_ones_own_is_called_by_its_title() -> None:
    kind = GrammarKind.JSON_SCHEMA
    assert AnswerForm.of_own(kind, '{"title": "A  person"}').title == "A person"
    for source in ("{}", "[]", "no JSON", '{"title": 3}', "[" * 100_000):
        assert AnswerForm.of_own(kind, source).title == ""


def answer(**changes: Any) -> Message:
    message = Message(
        message_id="m",
        conversation_id="c",
        parent_id="u",
        role=Role.ASSISTANT,
        content="{}",
        created_at=0.0,
        finish_reason="stop",
        made_in=MadeIn(FORMS[1]),
    )
    return replace(message, **changes)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, Outcome.WHOLE),
        ({"finish_reason": "length"}, Outcome.WHOLE),
        ({"finish_reason": "grammar_incomplete"}, Outcome.CUT),
        ({"state": MessageState.STOPPED, "finish_reason": "abort"}, Outcome.CUT),
        ({"state": MessageState.INTERRUPTED, "finish_reason": ""}, Outcome.CUT),
        ({"state": MessageState.FAILED, "finish_reason": ""}, Outcome.CUT),
        ({"state": MessageState.STREAMING}, None),
        ({"made_in": None}, None),
        ({"made_in": MadeIn(FORMS[1], True)}, Outcome.VALID),
        ({"made_in": MadeIn(FORMS[1], True, "wrong")}, Outcome.INVALID),
        (
            {"made_in": MadeIn(FORMS[1], True, "wrong"), "finish_reason": "grammar_incomplete"},
            Outcome.CUT,
        ),
    ],
)
def test_how_an_answer_came_out(changes: dict[str, Any], outcome: Outcome | None) -> None:
    assert answer(**changes).outcome is outcome
