"""The text of a file in one form: NFKC, plain line ends, nothing that controls or hides.

What looks like a model's control token stays as it is: the engine makes tokens of it as of any
other text.
"""

import re
import unicodedata

LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# A soft hyphen, or what pdfium gives for the hyphen at the end of a line.
BROKEN_WORDS = re.compile("[\xad\x02\ufffe][ \t]*\n?")
# Control characters; marks that turn the direction of writing; spaces of no width (those that join
# letters in Persian and Indian scripts stay); tags and variants, with which unseen text is written;
# halves of pairs; what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
UNSHOWN_SPACE = re.compile("[\t-\r\x85\u2028\u2029]")
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


def visible(name: str) -> str:
    """A file's name, or a sentence with one, as it may be shown: in one line, and written in the
    direction in which it is read."""
    return UNSEEN.sub("\ufffd", UNSHOWN_SPACE.sub("\ufffd", name))
