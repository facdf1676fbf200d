"""The text of a file in one form: NFKC, plain line ends, nothing that controls or hides.

What looks like a model's control token stays as it is: the engine makes tokens of it as of any
other text.
"""

import re
import unicodedata

from app.visible import UNSEEN

LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# A soft hyphen, or what pdfium gives for the hyphen at the end of a line.
BROKEN_WORDS = re.compile("[\xad\x02\ufffe][ \t]*\n?")
LINE_TAIL = re.compile("[ \t\u3000]+(?=\n)")
EMPTY_LINES = re.compile("\n{3,}")


def clean(text: str) -> str:
    """As a page holds it, without empty lines at its ends."""
    if not text.isascii() or not text.isprintable():
        text = LINE_ENDS.sub("\n", text)
        text = UNSEEN.sub("", BROKEN_WORDS.sub("", text))
        text = unicodedata.normalize("NFKC", text).replace("\t", " ")
    return EMPTY_LINES.sub("\n\n", LINE_TAIL.sub("", text)).strip("\n").rstrip()


def one_line(text: str) -> str:
    """For a cell, a heading or a title: its words with single spaces between them."""
    return " ".join(clean(text).split())
