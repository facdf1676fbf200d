"""Arabic comes out in the order in which it is read, however the file holds it."""

import pytest

from tests.app.documents.parsers.read import text_of
from tests.app.documents.pdf_file import PdfFile, mapped_font

LAM_ALEF = "\u0644\u0627"


def text_of_codes(meanings: dict[int, str]) -> str:
    """Its signs stand side by side from the left to the right."""
    file = PdfFile()
    codes = bytes(meanings).hex().encode()
    file.page(b"BT /F1 20 Tf 72 700 Td <%s> Tj ET" % codes, font=mapped_font(file, meanings))
    return text_of(file.data(), "a.pdf")


@pytest.mark.parametrize(
    "signs",
    [
        ["\u0645", "\u0627", "\u0644", "\u0633"],
        ["\u0645", LAM_ALEF, "\u0633"],
        ["\u0645", "\ufefb", "\u0633"],
        ["\u0633" + LAM_ALEF + "\u0645"],
    ],
    ids=["letters", "ligature of two letters", "ligature as one letter", "a word as one sign"],
)
def test_a_word_is_in_the_order_of_reading(signs: list[str]) -> None:
    assert text_of_codes(dict(enumerate(signs, start=65))) == "\u0633" + LAM_ALEF + "\u0645"


def test_latin_words_beside_it_stay_as_they_are() -> None:
    meanings = {65: "a", 66: "b", 67: " ", 68: "\u0633" + LAM_ALEF + "\u0645"}
    assert text_of_codes(meanings) == "ab \u0633" + LAM_ALEF + "\u0645"


def test_a_sign_above_a_letter_stays_with_it() -> None:
    assert text_of_codes({65: "\u062d\u064e"}) == "\u062d\u064e"


def test_a_space_that_its_font_maps_to_nothing_parts_words() -> None:
    signs = {65: "\u0645\u0633", 3: "", 66: "habibi"}
    assert text_of_codes(signs).split() == ["\u0645\u0633", "habibi"]
