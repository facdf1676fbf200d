"""What was written in the sheet makes a form, and a form is found there again."""

import json

import pytest

from app.chat.answer_form import AnswerForm, Medium
from app.chat.fields import Field, Fields, fields_as_json
from app.ui.form_draft import FormDraft, Way, draft_of
from engine.errors import GrammarError
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import ready_forms

READY = ready_forms()
FIELDS = fields_as_json([Field(name="a", meaning="b"), Field(name="c", is_needed=False)])


@pytest.mark.parametrize(
    "draft",
    [
        FormDraft(),
        FormDraft(Way.FORM, fields=FIELDS),
        FormDraft(Way.FORM, fields=FIELDS, is_list=True),
        FormDraft(Way.READY, ready="csv"),
        FormDraft(Way.SCHEMA, schema='{"type": "array"}'),
        FormDraft(Way.SCHEMA, schema='{"uniqueItems": true}', is_approximate=True),
        FormDraft(Way.CHOICES, choices="yes\nno, never"),
        FormDraft(Way.PATTERN, pattern=" [a-z]+ "),
        FormDraft(Way.GRAMMAR, grammar='root ::= "a"\n'),
        FormDraft(Way.GRAMMAR, grammar='start: "a"\n'),
    ],
    ids=lambda draft: draft.way,
)
def test_a_form_is_found_again_where_it_was_written(draft: FormDraft) -> None:
    assert draft_of(draft.form(READY), READY) == draft


def test_a_pasted_schema_stays_a_schema_though_fields_could_make_it() -> None:
    draft = FormDraft(Way.SCHEMA, schema=Fields((Field(name="a"),)).source())
    assert draft_of(draft.form(READY), READY) == draft


def test_a_ready_made_form_whose_file_is_gone_is_found_by_its_source() -> None:
    form = AnswerForm.of_ready(READY["csv"])
    assert draft_of(form, {}) == FormDraft(Way.GRAMMAR, grammar=form.grammar.source)


@pytest.mark.parametrize(
    ("source", "kind"), [('root ::= "a"', GrammarKind.GBNF), ('start: "a"', GrammarKind.LARK)]
)
def test_a_grammar_tells_its_language(source: str, kind: GrammarKind) -> None:
    form = FormDraft(Way.GRAMMAR, grammar=source).form(READY)
    assert form == AnswerForm(Grammar(kind, source))


def test_choices_are_lines_with_something_in_them() -> None:
    form = FormDraft(Way.CHOICES, choices="yes \n\n no\n").form(READY)
    assert form is not None and json.loads(form.grammar.source) == ["yes", "no"]
    assert form.medium is Medium.TEXT


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        (FormDraft(Way.FORM), "no field yet"),
        (FormDraft(Way.READY), "No form is chosen"),
        (FormDraft(Way.READY, ready="gone"), "No form is chosen"),
        (FormDraft(Way.PATTERN), "no pattern yet"),
        (FormDraft(Way.GRAMMAR, grammar=" \n"), "no grammar yet"),
    ],
)
def test_what_is_missing_is_said(draft: FormDraft, fault: str) -> None:
    with pytest.raises(GrammarError, match=fault):
        draft.form(READY)


def test_what_was_not_written_yet_is_empty() -> None:
    assert all(FormDraft(way).is_empty for way in Way)
    assert not FormDraft(Way.SCHEMA, schema="{").is_empty
    assert not FormDraft(Way.FORM, fields=FIELDS).is_empty
    # What stands behind another tab does not count.
    assert FormDraft(Way.PATTERN, schema="{").is_empty


@pytest.mark.parametrize("source", ["yes or no", "3", "[1]", "[" * 100_000])
def test_choices_that_are_no_list_of_texts_leave_the_sheet_empty(source: str) -> None:
    form = AnswerForm(Grammar(GrammarKind.CHOICE, source))
    assert draft_of(form, READY) == FormDraft(Way.CHOICES)


@pytest.mark.parametrize("way", Way)
def test_only_a_schema_is_followed_approximately(way: Way) -> None:
    assert FormDraft(way, is_approximate=True).may_be_broken == (way is Way.SCHEMA)
