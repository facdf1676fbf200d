"""A title is one short line that can be read, or it is none."""

import pytest

from app.chat.title import LENGTH, clean_title, first_words


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Planting tomatoes", "Planting tomatoes"),
        ('"Planting tomatoes."', "Planting tomatoes"),
        ("**Planting tomatoes**", "Planting tomatoes"),
        ("# Planting tomatoes\n\nThat is a good title.", "Planting tomatoes"),
        ("Title: „Tomaten pflanzen“", "Tomaten pflanzen"),
        ("The title is: Planting `tomatoes`", "Planting tomatoes"),
        ("1. Planting tomatoes", "Planting tomatoes"),
        ("\n\n  Planting \t tomatoes\r\n", "Planting tomatoes"),
        ("1984 and other years", "1984 and other years"),
        ("Why?", "Why?"),
        ("トマトの植え方。", "トマトの植え方"),
        ("And then...", "And then..."),
        ("a\u202eb\x1b[31m", "a b [31m"),
        ("", ""),
        (" \n ", ""),
        ("***", ""),
        ('""', ""),
        ("A broken \ufffd character", ""),
    ],
)
def test_what_a_model_says_becomes_a_title(answer: str, title: str) -> None:
    assert clean_title(answer, is_whole=True) == title


def test_a_line_that_was_cut_off_is_no_title() -> None:
    assert clean_title("This conversation is about the", is_whole=False) == ""


def test_a_whole_line_before_the_cut_is_one() -> None:
    assert clean_title("Planting tomatoes\nThis title was cho", is_whole=False) == (
        "Planting tomatoes"
    )


def test_a_long_title_is_cut_between_words() -> None:
    title = clean_title("word " * 40, is_whole=True)
    assert title == first_words("word " * 40)
    assert len(title) <= LENGTH + 1
    assert title.endswith("word…")
