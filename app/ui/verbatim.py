"""Text that is shown exactly as it is, whatever markdown or HTML would make of it.

Characters that these would act on are spelled `&#x0003C;`: five digits, a form nobody types. The
page's script spells them back when a row is copied, so a copy is the text itself.
"""

import re

# A lone space between two words stays a space, so that long lines can break. U+0085 stays too:
# its entity means another character.
ACTIVE = re.compile(r"[!-/:-@\[-`{-~]|[^\S \x85]|(?<!\S) | (?!\S)")


def protect(text: str) -> str:
    """Every character of `text` as an entity that neither markdown nor HTML acts on."""
    return "".join(f"&#x{ord(char):05X};" for char in text)


def show_verbatim(text: str) -> str:
    """Markdown that shows exactly `text`; with `white-space: pre-wrap` it also looks like it."""
    return ACTIVE.sub(lambda match: protect(match[0]), text)
