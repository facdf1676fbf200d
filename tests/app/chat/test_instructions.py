"""What the model is told of the form that it has to answer in."""

from dataclasses import replace

from app.chat.answer_form import AnswerForm
from app.chat.fields import Field, Fields
from app.chat.instructions import LONGEST_SHOWN, instructions, is_shown
from app.chat.message import Conversation
from engine.guided.grammar import GrammarKind
from grammars.catalog import ready_forms

PLAIN = Conversation(
    conversation_id="c", title="", created_at=0, updated_at=0, system_prompt="Be brief."
)


def with_form(form: AnswerForm) -> Conversation:
    return replace(PLAIN, answer_form=form)


def test_without_a_form_there_is_the_system_prompt() -> None:
    assert instructions(PLAIN) == "Be brief."
    assert instructions(replace(PLAIN, system_prompt=" ")) == ""


def test_what_a_field_means_is_told() -> None:
    source = Fields((Field(name="hue", meaning="the colour of the eyes"),)).source()
    told = instructions(with_form(AnswerForm.of_own(GrammarKind.JSON_SCHEMA, source)))
    assert told.startswith("Be brief.\n\n")
    assert "the colour of the eyes" in told and "hue" in told


def test_a_ready_made_form_is_told_in_words() -> None:
    told = instructions(with_form(AnswerForm.of_ready(ready_forms()["csv"])))
    assert "CSV with a header. Two lines or more" in told
    assert "start:" not in told


def test_a_form_that_is_too_long_is_not_told() -> None:
    longest = AnswerForm.of_own(GrammarKind.REGEX, "a" * LONGEST_SHOWN)
    longer = AnswerForm.of_own(GrammarKind.REGEX, "a" * (LONGEST_SHOWN + 1))
    assert is_shown(longest) and not is_shown(longer)
    assert "aaa" in instructions(with_form(longest))
    assert instructions(with_form(longer)) == "Be brief."
