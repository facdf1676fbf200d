"""What a conversation is called before its user names it: its first words, or the model's idea."""

import re

LENGTH = 60

QUESTION = (
    "Give our conversation a title of two to six words, in the language I wrote in. Answer with"
    " the title only."
)
"""Asked as if it were the user's next message, so that everything before it is held already."""
MAX_TOKENS = 16

_LABEL = re.compile(
    r"^(?:the )?(?:title|titel|titre|título|titolo)\s*(?:is)?\s*[:：]\s*", re.IGNORECASE
)
_MARKS = "#*_`~>\"'“”„‘’«»‹›「」『』-–—•| \t"
_LEADING_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")


def first_words(text: str) -> str:
    """The first words that fit, on one line."""
    line = " ".join(text.split())
    if len(line) <= LENGTH:
        return line
    cut = line[:LENGTH]
    # A script without spaces is cut where the length ends.
    return (cut.rsplit(" ", 1)[0] if " " in cut[LENGTH // 2 :] else cut) + "…"


def clean_title(answer: str, is_whole: bool) -> str:
    """The title in a model's answer; empty when there is none that could be shown.

    `is_whole`: the model came to an end by itself. A line that was cut off is no title.
    """
    lines = [line for line in answer.splitlines() if line.strip()]
    if not lines or (len(lines) == 1 and not is_whole):
        return ""
    title = "".join(c if c.isprintable() else " " for c in lines[0])
    title = _LEADING_NUMBER.sub("", title.strip(_MARKS))
    title = _LABEL.sub("", title).strip(_MARKS)
    # One full stop ends a sentence; more of them are meant.
    if title.endswith((".", "。")) and not title.endswith(".."):
        title = title[:-1].rstrip(_MARKS)
    title = first_words(title.replace("**", "").replace("`", ""))
    is_readable = any(c.isalnum() for c in title) and "\ufffd" not in title
    return title if is_readable else ""
