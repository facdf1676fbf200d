"""The texts of the chat workloads."""

from itertools import islice
from pathlib import Path

import pytest

from app.bench.chat_texts import QUESTION_TOKENS, QUESTIONS, Texts, sentences, sources_of
from engine.errors import UsageError
from tests.fakes_text import FakeTokenizer


def test_a_passage_has_the_size_that_was_wanted() -> None:
    tokenizer = FakeTokenizer()
    for texts in (Texts(tokenizer), Texts(tokenizer, ["here are some words " * 50])):
        for size in (200, 2000):
            length = len(tokenizer.encode(texts.passage(3, size)))
            assert size - 200 < length <= size


def test_the_same_number_is_the_same_text_in_every_run() -> None:
    assert Texts(FakeTokenizer()).passage(5, 800) == Texts(FakeTokenizer()).passage(5, 800)


def test_no_two_passages_begin_alike() -> None:
    texts = Texts(FakeTokenizer(), ["only one source, for all of them"])
    beginnings = {texts.passage(number, 300).split()[0] for number in range(20)}
    assert len(beginnings) == 20


def test_sources_are_taken_in_turn_and_from_other_places_later() -> None:
    sources = [" ".join(f"{letter}{number}" for number in range(2000)) for letter in "ab"]
    texts = Texts(FakeTokenizer(), sources)
    first, second, third = (texts.passage(number, 400).split()[1:] for number in range(3))
    assert (first[0], second[0], third[0]) == ("a0", "b0", "a997")


def test_made_up_sentences_differ() -> None:
    assert len(set(islice(sentences(1), 50))) == 50
    assert next(sentences(1)) != next(sentences(2))


def test_a_question_takes_no_more_than_it_is_planned_with(starter: Path) -> None:
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(starter, facts_only=True)
    around = 24
    assert all(len(model.vocabulary.encode(text)) + around <= QUESTION_TOKENS for text in QUESTIONS)
    model.close()


def test_a_folder_gives_its_texts_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("second")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "c.md").write_text("no text file")
    assert sources_of(str(tmp_path)) == ["first", "second"]
    assert sources_of("") == []


def test_a_folder_without_texts_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    with pytest.raises(UsageError, match="no text"):
        sources_of(str(tmp_path))
