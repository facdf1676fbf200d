"""A token by itself can be seen, and is no markup."""

from app.ui.token_text import token_html, visible


def test_white_space_of_a_token_can_be_seen() -> None:
    assert visible(" a\n") == "␣a⏎"
    assert token_html("") == "<code>&nbsp;</code>"


def test_nothing_of_a_token_acts() -> None:
    assert token_html("<b>&", is_control=True).count("<") == 2
