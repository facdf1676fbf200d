"""The line below a hit: the place that has most of the question, with its words marked."""

from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.snippet import LENGTH, Snippet, make_snippet
from app.documents.text_index import Weighed
from app.documents.words import question_terms


def snippet(text: str, question: str) -> Snippet:
    weighed = [
        Weighed(
            term=term,
            beginning=term.beginning,
            weights={token: 1.0 for token in term.tokens},
            num_rows=1,
            num_there=len(term.tokens),
        )
        for term in question_terms(question)
    ]
    return make_snippet(text, weighed, same)


def same(words: Iterable[str]) -> Mapping[str, str]:
    return {word: word for word in words}


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.marks]


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    found = snippet("The Inn,\nand  the\tDanube.", "the Danube and the Inn")
    assert found.text == "The Inn, and the Danube."
    assert marked(found) == ["Inn", "Danube"]


def test_the_stretch_with_most_of_the_question_is_shown() -> None:
    text = "The inn is old. " + "word " * 200 + "Where inn and danube meet. " + "word " * 200
    found = snippet(text, "the inn, the danube")
    assert marked(found) == ["inn", "danube"]
    assert found.text.startswith("…") and found.text.endswith("…")
    assert len(found.text) <= LENGTH + 2


def test_forms_of_a_word_are_marked() -> None:
    assert marked(snippet("в больших городах мира", "большой город")) == ["больших", "городах"]
    assert marked(snippet("Hochwasserschutz", "Hochwasser")) == ["Hochwasserschutz"]
    assert marked(snippet("Crème brûlée!", "creme")) == ["Crème"]


def test_in_scripts_without_spaces_what_touches_is_one_mark() -> None:
    assert marked(snippet("他在东京大学学习。", "东京大学")) == ["东京大学"]


def test_words_from_right_to_left_stay_in_their_order() -> None:
    found = snippet("ولد محمد في مكة", "محمد مكة")
    assert marked(found) == ["محمد", "مكة"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400), st.text(max_size=30))
def test_marks_are_inside_and_never_overlap(text: str, question: str) -> None:
    found = snippet(text, question)
    assert "\n" not in found.text
    places = [place for mark in found.marks for place in mark]
    assert places == sorted(places)
    assert all(0 <= place <= len(found.text) for place in places)
