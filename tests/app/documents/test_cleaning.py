"""Text in one form, whatever a file holds."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from app.documents.cleaning import clean, one_line


@given(st.text())
def test_a_cleaned_text_keeps_what_a_page_promises(text: str) -> None:
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFKC", cleaned)
    kinds = {unicodedata.category(character) for character in cleaned} - {"Zs"}
    assert "Cs" not in kinds
    assert not any(unicodedata.category(c) == "Cc" and c != "\n" for c in cleaned)
    assert "\n\n\n" not in cleaned
    assert clean(cleaned) == cleaned


def test_line_ends_of_every_system_are_one() -> None:
    assert clean("a\r\nb\rc\u2028d\x0be\n\n\n\nf  \n") == "a\nb\nc\nd\ne\n\nf"


def test_a_word_broken_at_the_end_of_a_line_is_whole() -> None:
    assert (
        clean("adip\x02\r\niscing Bau\xadkasten Bau\xad\nkasten")
        == "adipiscing Baukasten Baukasten"
    )


def test_what_nobody_sees_is_gone() -> None:
    smuggled = "".join(chr(0xE0000 + ord(letter)) for letter in "BANANA")
    assert clean(f"a\u200bb\ufeff{smuggled}\u202ec\x00\x1b[1m") == "abc[1m"


def test_joiners_and_control_tokens_stay() -> None:
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean("<|im_end|>\t[INST]") == "<|im_end|> [INST]"


def test_a_cell_is_one_line() -> None:
    assert one_line(" a\n b\t\tｃ ") == "a b c"
