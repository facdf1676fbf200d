"""llama.cpp's grammars in Lark's form, with the place of a fault in them."""

import re

from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

from engine.errors import GrammarError

# What is no name: texts, sets of characters, comments, repetitions.
_PARTS = re.compile(
    r"""
    "(?:\\.|[^"\\\n])*" | \[(?:\\.|[^\]\\\n])*\] | \#[^\n]* | \{[^}\n]*\}
    | (?P<name>[A-Za-z][A-Za-z0-9_-]*) (?P<defines>\s*::=)?
    """,
    re.VERBOSE,
)


def lark_of(source: str) -> str:
    """Raises GrammarError with the line and the column."""
    _check_rules(source)
    try:
        lark: str = any_to_lark(source)
    except GbnfToLarkError as error:
        raise GrammarError(
            f"The grammar cannot be read: {str(error).partition(' at ')[0]} in"
            f" {_place(source, error.pos.pos)}."
        ) from error
    except RecursionError as error:
        raise GrammarError("The grammar is nested too deeply: make it flatter.") from error
    return lark


def _check_rules(source: str) -> None:
    defined: set[str] = set()
    used: dict[str, int] = {}
    for part in _PARTS.finditer(source):
        name = part["name"]
        if name is None:
            continue
        if not part["defines"]:
            used.setdefault(name, part.start())
        elif name in defined:
            raise GrammarError(
                f"The rule {name!r} is there twice, the second time in"
                f" {_place(source, part.start())}: give one of them another name."
            )
        else:
            defined.add(name)
    for name, place in used.items():
        if name not in defined:
            raise GrammarError(
                f"There is no rule {name!r}, which {_place(source, place)} refers to: add it."
            )
    alike: dict[str, str] = {}
    for name in sorted(defined):
        other = alike.setdefault(name.replace("-", "_").upper(), name)
        if other != name or name == "start":
            raise GrammarError(
                f"The rule {name!r} cannot be told from {'root' if name == 'start' else other!r}:"
                " give it another name."
            )
    if "root" not in defined:
        raise GrammarError("The grammar has no rule 'root', with which an answer begins: add it.")


def _place(source: str, place: int) -> str:
    line = source.count("\n", 0, place) + 1
    column = place - (source.rfind("\n", 0, place) + 1) + 1
    return f"line {line}, column {column}"
