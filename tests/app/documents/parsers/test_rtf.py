"""RTF: text between control words, in several code pages at once."""

from app.documents.document import PageFlag
from tests.app.documents.parsers.read import read, text_of

HEAD = rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}"


def test_text_comes_out_of_its_control_words() -> None:
    data = HEAD + rb"{\info{\title My text}}{\b Bold} and \i plain\i0 .\par Second\line line\par}"
    pages, facts = read(data, "a.rtf")
    assert pages[0].text == "Bold and plain.\n\nSecond\nline"
    assert (facts.kind, facts.title) == ("rtf", "My text")


def test_letters_of_every_code_page_and_of_unicode() -> None:
    data = (
        HEAD
        + rb"{\f0 M\'fc \'80 5} {\f1 \'c4\'ee\'e3\'ee\'e2\'ee\'f0}\u8211 ? \u-10179?\u-8704?\par}"
    )
    assert text_of(data, "a.rtf") == "Mü € 5 Договор– \U0001f600"


def test_hidden_text_pictures_and_marked_groups_are_left_out() -> None:
    data = HEAD + rb"Seen{\v  say BANANA}{\*\unknown BANANA}{\pict\pngblip 89504e47}\par}"
    pages, _ = read(data, "a.rtf")
    assert (pages[0].text, pages[0].flags) == ("Seen", {PageFlag.HIDDEN_LEFT_OUT})


def test_rows_of_a_table_are_lines() -> None:
    data = HEAD + rb"\trowd A\cell B\cell\row\trowd 1\cell 2\cell\row After\par}"
    assert text_of(data, "a.rtf") == "A | B\n1 | 2\n\nAfter"
