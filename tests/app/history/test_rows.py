"""Rows that another version wrote are read as far as they are understood."""

import json

import pytest

from app.chat.answer_form import AnswerForm
from app.history.rows import form_as_text, form_from_text
from engine.guided.grammar import GrammarKind


def test_a_form_comes_back_as_it_was() -> None:
    form = AnswerForm.of_own(GrammarKind.REGEX, "[a-z]+")
    assert form_from_text(form_as_text(form)) == form
    assert form_from_text(form_as_text(None)) is None


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "choice", "source": "no list"},
        {"kind": "later", "source": "x"},
        {"kind": "regex", "source": 3},
        [1],
    ],
)
def test_a_form_that_is_not_understood_does_not_keep_its_conversation_from_opening(
    stored: object,
) -> None:
    assert form_from_text(json.dumps(stored)) is None
