"""A user's text is shown and copied exactly, whatever markdown would make of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.verbatim import show_verbatim

NASTY = [
    "<b>bold</b> & <script>alert(1)</script> a<b",
    "$5 to $10, $$x$$, \\(y\\) and \\[z\\]",
    "    four spaces\n\ttab\n  two   inside  \n\n\nend  ",
    "# not a title\n- not a list\n1. nor this\n> nor that\n---\n```\nnor code\n```",
    "[link](http://evil.test) ![image](http://evil.test/a.png) <http://evil.test>",
    "www.evil.test someone@evil.test http://evil.test",
    "&lt;b&gt; &amp; &#x0003C; &nbsp;",
    "👩‍👩‍👧‍👦 مرحبا بالعالم שלום \u200b\u202eabc e\u0301",
    "*a* _b_ ~~c~~ `d` | e | f^2 ==g==",
    "\n\nlines around\n\n",
    "a\u00a0b\u2028c\x0bd",
]


def as_typed(markdown: str) -> str:
    """What the page's script puts on the clipboard."""
    return re.sub(r"&#x(0[0-9A-F]{4});", lambda match: chr(int(match[1], 16)), markdown)


@pytest.mark.parametrize("text", NASTY)
def test_a_users_text_comes_back_from_its_spelling(text: str) -> None:
    assert as_typed(show_verbatim(text)) == text


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"])))
def test_no_character_of_a_user_is_left_for_markdown(text: str) -> None:
    shown = show_verbatim(text)
    assert as_typed(shown) == text
    outside = re.sub(r"&#x[0-9A-F]{5};", "x", shown)
    assert not re.search(r"[!-/:-@\[-`{-~\n\t]|^ | $|  ", outside)
