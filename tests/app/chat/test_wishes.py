"""What the model is told of the form that it has to answer in, and when."""

from app.chat.answer_form import AnswerForm
from app.chat.fields import Field, Fields
from app.chat.wishes import LONGEST_SHOWN, TEXT_AGAIN, Wishes, in_words, is_shown
from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import ready_forms

CSV = AnswerForm.of_ready(ready_forms()["csv"])
DATE = AnswerForm.of_ready(ready_forms()["date"])


def test_what_a_field_means_is_told() -> None:
    source = Fields((Field(name="hue", meaning="the colour of the eyes"),)).source()
    told = in_words(AnswerForm.of_own(GrammarKind.JSON_SCHEMA, source))
    assert "the colour of the eyes" in told and "hue" in told


def test_a_ready_made_form_is_told_in_words() -> None:
    assert "CSV with a header. Up to thirty lines" in in_words(CSV)
    assert "start:" not in in_words(CSV)


def test_a_form_that_is_too_long_is_not_told() -> None:
    longest = AnswerForm.of_own(GrammarKind.REGEX, "a" * LONGEST_SHOWN)
    longer = AnswerForm.of_own(GrammarKind.REGEX, "a" * (LONGEST_SHOWN + 1))
    assert is_shown(longest) and not is_shown(longer)
    assert "aaa" in in_words(longest)
    assert in_words(longer) == ""


def test_only_a_change_is_told() -> None:
    wishes = Wishes()
    told = [wishes.next(form) for form in (None, CSV, CSV, DATE, None, None, CSV)]
    assert told == ["", in_words(CSV), "", in_words(DATE), TEXT_AGAIN, "", in_words(CSV)]


def test_a_form_that_is_not_told_is_never_called_plain_text() -> None:
    longer = AnswerForm.of_own(GrammarKind.REGEX, "a" * (LONGEST_SHOWN + 1))
    wishes = Wishes()
    told = [wishes.next(form) for form in (DATE, longer, longer, DATE, longer, None)]
    assert told == [in_words(DATE), "", "", in_words(DATE), "", TEXT_AGAIN]


def test_a_described_form_is_told_however_long_its_source_is() -> None:
    grammar = Grammar(GrammarKind.REGEX, "a" * (LONGEST_SHOWN + 1))
    described = AnswerForm(grammar, "Letters", "Nothing but a.")
    assert is_shown(described) and "Nothing but a." in in_words(described)
