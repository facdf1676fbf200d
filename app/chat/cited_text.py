"""The form of an answer that names passages: text in which a bracket can only be a mark.

After `[` come the numbers of passages that were given, and `]`; after a mark nothing that would
make a link of it. So no link, no picture and no number that stands for nothing can be written.
Nor can two `<` side by side, with which the passages are fenced in the prompt: a small model goes
on with those as with an answer. One alone is a sign like any other.
"""

from functools import lru_cache

from engine.guided.grammar import Grammar, GrammarKind

# With those that look like them, which some models write for marks.
BRACKETS = r"\[\]［］【】"


@lru_cache(maxsize=64)
def cited_text(num_passages: int) -> Grammar:
    """For passages that are numbered from 1; where there are none, there are no brackets."""
    if not num_passages:
        return Grammar(GrammarKind.LARK, f"start: /(?:<?[^{BRACKETS}<])*<?/")
    numbers = "|".join(map(str, range(1, num_passages + 1)))
    marks = rf"(?:\[(?:{numbers})\])+"
    pattern = rf"(?:<?(?:[^{BRACKETS}<]|{marks}<?[^{BRACKETS}(:<]))*(?:<?{marks})?<?"
    return Grammar(GrammarKind.LARK, f"start: /{pattern}/")
