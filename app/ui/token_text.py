"""A token where it stands by itself: its white space can be seen."""

from app.ui.verbatim import show_verbatim

SIGNS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽"}


def visible(text: str) -> str:
    """The text with a sign for what would not be seen, or be lost at its edges."""
    return "".join(SIGNS.get(each, each) for each in text)


def token_html(text: str, *, is_control: bool = False) -> str:
    tag = "b" if is_control else "code"
    return f"<{tag}>{show_verbatim(visible(text)) or '&nbsp;'}</{tag}>"
