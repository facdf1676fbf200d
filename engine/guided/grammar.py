"""The form that an answer is to have, as somebody wrote it down."""

from dataclasses import dataclass
from enum import Enum


class GrammarKind(Enum):
    """In which language a form is written."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    """A JSON list of texts, of which the answer is one."""
    GBNF = "gbnf"
    """llama.cpp's grammars."""
    LARK = "lark"
    """Lark's grammars, as llguidance reads them."""


def grammar_kind(source: str) -> GrammarKind:
    """In which of the two languages for grammars this one is written."""
    return GrammarKind.GBNF if "::=" in source else GrammarKind.LARK


@dataclass(frozen=True, slots=True)
class Grammar:
    """A form and how strictly it is meant.

    `is_approximate`: where a schema cannot be enforced exactly, enforce what can be, and let the
    caller check the answer. `examples`: answers in this form, whose ends may end others.
    """

    kind: GrammarKind
    source: str
    is_approximate: bool = False
    examples: tuple[str, ...] = ()
