"""Where sentences end, in any script, and that nothing but white space lies between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It is long. It is blue!", ["It is long.", "It is blue!"]),
        ("It is long. [1] It is blue [2].", ["It is long. [1]", "It is blue [2]."]),
        ("It is long.[1][2] It is blue.", ["It is long.[1][2]", "It is blue."]),
        ("See Dr. Smith, i.e. J. R. Smith. Yes.", ["See Dr. Smith, i.e. J. R. Smith.", "Yes."]),
        ("It has 3.5 km. Yes", ["It has 3.5 km.", "Yes"]),
        ("Am 3. Oktober war es. Ja.", ["Am 3. Oktober war es.", "Ja."]),
        ("It is long and\nblue. Yes\nIt is.", ["It is long and\nblue.", "Yes", "It is."]),
        ("- One [1]\n- Two\n\nThree", ["- One [1]", "- Two", "Three"]),
        ("100. One thing.\n101. **Two**", ["100. One thing.", "101. **Two**"]),
        ("10. **One**: so.\n1998. It is.", ["10. **One**: so.", "1998.", "It is."]),
        ("因河很长[1]。它是蓝的！", ["因河很长[1]。", "它是蓝的！"]),
        ("長い。青い。", ["長い。", "青い。"]),
        ("كم طوله؟ طويل۔ نعم", ["كم طوله؟", "طويل۔", "نعم"]),
        ("नदी लंबी है। हाँ", ["नदी लंबी है।", "हाँ"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_are_found(text: str, parts: list[str]) -> None:
    assert cut(text) == parts


def test_a_printed_page_has_lines_that_end_nothing() -> None:
    page = "It was the first\nTesla coil. It had\n3 arms\n\nNext part"
    parts = [page[span.start : span.end] for span in sentences(page, is_wrapped=True)]
    assert parts == ["It was the first\nTesla coil.", "It had\n3 arms", "Next part"]


@given(st.text(alphabet="ab. 。[1]\n!?A", max_size=40))
def test_nothing_is_lost(text: str) -> None:
    spans = list(sentences(text))
    end = 0
    for span in spans:
        assert span.start < span.end and not text[end : span.start].strip()
        end = span.end
    assert not text[end:].strip()
