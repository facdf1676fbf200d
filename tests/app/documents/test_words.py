"""What looks the same is the same, in a document and in a question."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.words import Script, fold, index_text, question_terms, tokens

PRESENTATION_FORMS = "\ufee3\ufea3\ufee4\ufeaa"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("Crème Brûlée", "creme brulee"),
        ("１２３ＡＢＣ", "123abc"),
        ("٣٠٨", "308"),
        ("۳۰۸", "308"),
        ("०१२", "012"),
        (PRESENTATION_FORMS, "محمد"),
        ("مُحَمَّد", "محمد"),
        ("محــمد", "محمد"),
        ("أحمد", "احمد"),
        ("إسلام", "اسلام"),
        ("مدرسة", "مدرسه"),
        ("على", "علي"),
        ("ёлка", "елка"),
        ("שָׁלוֹם", "שלום"),
        ("ﬁne", "fine"),
        ("soft\u00adhyphen", "softhyphen"),
        ("zero\u200bwidth", "zerowidth"),
        ("ｶﾞ", "ガ"),
        ("É", "e\u0301"),
    ],
)
def test_what_is_written_in_two_ways_is_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize("word", ["กรุงเทพ", "नमस्ते", "がぎ", "한국어", "tʰ"])
def test_marks_that_make_another_word_stay(word: str) -> None:
    assert fold(word) == unicodedata.normalize("NFKC", word).casefold()


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert tokens(fold(fold(text))) == tokens(fold(text))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_a_token_holds_nothing_that_a_query_could_break_on(text: str) -> None:
    for token in tokens(fold(text)):
        assert token and not set(token) & set("\"'*()-:^ \n\0")


def test_scripts_are_divided_as_they_need() -> None:
    assert index_text("Twelve Häuser") == "twelve hauser"
    assert index_text("中国人 A") == "中国 国人 a"
    assert index_text("中") == "中"
    assert index_text("домов") == "дом омо мов"
    assert index_text("да") == "да"


def test_signs_belong_to_no_word() -> None:
    assert index_text("هارفارد؟") == index_text("هارفارد")
    assert index_text("עברית־שפה") == index_text("עברית שפה")
    assert index_text("アイ・ウエ") == "アイ ウエ"
    assert index_text("नमस्ते।") == index_text("नमस्ते")
    assert index_text("«дом»") == "дом"


def test_a_question_keeps_what_it_is_about() -> None:
    assert [term.word for term in question_terms("What is the name of the river?")] == [
        "name",
        "river",
    ]
    assert [term.word for term in question_terms("Wie heißt der Fluss, der Fluss?")] == [
        "heisst",
        "fluss",
    ]
    assert [term.word for term in question_terms("谁设计了标志？")] == ["设计", "标志"]


def test_a_question_of_small_words_alone_keeps_them() -> None:
    assert [term.word for term in question_terms("Who is it?")] == ["who", "is", "it"]
    assert [term.word for term in question_terms("什么")] == ["什么"]
    assert question_terms("?!") == ()


def test_words_that_are_not_english_are_also_beginnings_of_longer_ones() -> None:
    (word,) = question_terms("Hochwasser")
    assert (word.beginning, word.script) == ("hochwasse", Script.LETTERS)
    (english,) = question_terms("What is insurance?")
    assert (english.beginning, english.script) == ("", Script.ENGLISH)
    assert question_terms("20240131")[0].beginning == ""
