"""The form that the next answers of a conversation are to have, and the one that an answer has.

A ready-made form is copied here, so that a conversation keeps what was chosen for it when the file
changes, goes, or was never on the machine to which an export or a preset is taken.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from engine.guided.grammar import Grammar, GrammarKind
from grammars.catalog import ReadyForm

LONGEST_TITLE = 200


class Medium(Enum):
    """What an answer in a form is, for those who show or store it."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    MERMAID = "mermaid"
    SQL = "sql"


class Outcome(Enum):
    """How an answer came out in its form."""

    WHOLE = "whole"
    """It was kept to the form to its end."""
    CUT = "cut"
    """It ended before it had its form."""
    VALID = "valid"
    """The form could not be enforced as a whole; checked afterwards, the answer has it."""
    INVALID = "invalid"
    """As `VALID`, but the answer does not have it."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """`title` is what people call it, or empty; `description` is for the model and the reader."""

    grammar: Grammar
    title: str = ""
    description: str = ""
    medium: Medium = Medium.TEXT

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes; only what is not as by default."""
        grammar = self.grammar
        values = {
            "is_approximate": grammar.is_approximate,
            "examples": list(grammar.examples),
            "title": self.title,
            "description": self.description,
            "medium": "" if self.medium is Medium.TEXT else self.medium.value,
        }
        given = {name: value for name, value in values.items() if value}
        return {"kind": grammar.kind.value, "source": grammar.source, **given}

    @classmethod
    def from_json(cls, found: object) -> "AnswerForm":
        """Raises ValueError for what `as_json` does not write."""
        if not isinstance(found, Mapping):
            raise ValueError("a form is an object")
        examples = found.get("examples", [])
        if not isinstance(examples, list) or not all(isinstance(each, str) for each in examples):
            raise ValueError("the examples of a form are a list of texts")
        is_approximate = found.get("is_approximate", False)
        if not isinstance(is_approximate, bool):
            raise ValueError("'is_approximate' of a form is true or false")
        kind, source = GrammarKind(_text(found, "kind")), _text(found, "source")
        if kind is GrammarKind.CHOICE:
            choices_in(source)
        grammar = Grammar(kind, source, is_approximate, tuple(examples))
        title = _text(found, "title")
        medium = Medium(_text(found, "medium") or Medium.TEXT.value)
        return cls(grammar, title[:LONGEST_TITLE], _text(found, "description"), medium)

    @classmethod
    def of_ready(cls, ready: ReadyForm) -> "AnswerForm":
        """A copy of a ready-made one."""
        kind = GrammarKind(ready.kind)
        grammar = Grammar(kind, ready.source, examples=ready.accepted)
        return cls(grammar, ready.title, ready.description, Medium(ready.medium or _medium(kind)))

    @classmethod
    def of_own(cls, kind: GrammarKind, source: str, is_approximate: bool = False) -> "AnswerForm":
        """One that somebody has written."""
        title = _title(source) if kind is GrammarKind.JSON_SCHEMA else ""
        return cls(Grammar(kind, source, is_approximate), title, "", Medium(_medium(kind)))


@dataclass(frozen=True, slots=True)
class MadeIn:
    """The form that an answer was made in. `is_checked`: also by a validator when it was written,
    which has found `fault`, or nothing."""

    form: AnswerForm
    is_checked: bool = False
    fault: str = ""

    def as_json(self) -> dict[str, Any]:
        checked = {"is_checked": True, "fault": self.fault} if self.is_checked else {}
        return {"form": self.form.as_json(), **checked}

    @classmethod
    def from_json(cls, found: object) -> "MadeIn":
        """Raises ValueError for what `as_json` does not write."""
        if not isinstance(found, Mapping):
            raise ValueError("what an answer was made in is an object")
        is_checked = found.get("is_checked", False)
        if not isinstance(is_checked, bool):
            raise ValueError("'is_checked' is true or false")
        return cls(AnswerForm.from_json(found.get("form")), is_checked, _text(found, "fault"))


def choices_in(source: str) -> list[str]:
    """Those of a form of this kind. Raises ValueError unless it is a JSON list of texts."""
    try:
        choices = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ValueError("the choices of a form are a JSON list of texts") from error
    if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        raise ValueError("the choices of a form are a JSON list of texts")
    return choices


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} of a form is a text")
    return value


def _medium(kind: GrammarKind) -> str:
    return "json" if kind is GrammarKind.JSON_SCHEMA else "text"


def _title(schema: str) -> str:
    """Its own, if it has one."""
    try:
        found = json.loads(schema)
    except (ValueError, RecursionError):
        return ""
    title = found.get("title") if isinstance(found, dict) else None
    return " ".join(title.split())[:LONGEST_TITLE] if isinstance(title, str) else ""
