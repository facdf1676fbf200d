"""Names as they may be shown: what controls a terminal or hides in a text is made visible."""

import re

# Control characters; marks that turn the direction of writing; spaces of no width (those that join
# letters in Persian and Indian scripts stay); tags and variants, with which unseen text is written;
# halves of pairs; what is no character.
UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
UNSHOWN_SPACE = re.compile("[\t-\r\x85\u2028\u2029]")


def visible(name: str) -> str:
    """A file's name, or a sentence with one, as it may be shown: in one line, and written in the
    direction in which it is read."""
    return UNSEEN.sub("\ufffd", UNSHOWN_SPACE.sub("\ufffd", name))
