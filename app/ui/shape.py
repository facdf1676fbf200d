"""What an answer looks like when it is not read as text: names with values, a table, or a list."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.chat.answer_form import Medium
from app.ui.json_text import Exact, Unreadable, read, read_beginning

MOST_COLUMNS = 40
LONGEST_CELL = 600
"""Characters of a value that are shown in a table."""
DEEPEST = 6
"""Levels of names and values; what lies deeper is shown as JSON."""


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` is empty for a list without names; then each row is one text."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Record:
    """Names and their values, in the order of the answer."""

    entries: tuple[tuple[str, "Shape"], ...]


Shape = str | Table | Record


def shape_of(text: str, medium: Medium) -> Shape | None:
    """Of an answer, perhaps not to its end. None: it is best shown as the text that it is."""
    try:
        if medium is Medium.CSV:
            return _table_of_csv(text)
        if medium is Medium.JSON:
            return shape_of_value(_value(text))
    except (Unreadable, RecursionError):
        pass
    return None


def is_json(text: str) -> bool:
    """Whether it is a JSON object or list, from beginning to end."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(read(text), dict | list)
    except Unreadable:
        return False


def _value(text: str) -> Any:
    try:
        return read(text)
    except Unreadable:
        return read_beginning(text)


def shape_of_value(value: Any, depth: int = 0) -> Shape:
    if isinstance(value, dict) and depth < DEEPEST:
        return Record(
            tuple((name, shape_of_value(each, depth + 1)) for name, each in value.items())
        )
    if isinstance(value, list) and value and depth < DEEPEST:
        return _table_of(value)
    return in_words(value)


def in_words(value: Any) -> str:
    """A value as one text."""
    match value:
        case None:
            return "none"
        case True:
            return "yes"
        case False:
            return "no"
        case str():
            return value
        case list() if all(not isinstance(each, dict | list) for each in value):
            return ", ".join(map(in_words, value))
    return as_json(value)


def as_json(value: Any) -> str:
    """In one line, with numbers as they were spelled."""
    match value:
        case Exact():
            return str(value)
        case dict():
            inner = (f"{json.dumps(n, ensure_ascii=False)}: {as_json(v)}" for n, v in value.items())
            return "{" + ", ".join(inner) + "}"
        case list():
            return "[" + ", ".join(map(as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _table_of(values: list[Any]) -> Table:
    if not all(isinstance(each, Mapping) for each in values) or not any(values):
        return Table((), [(_cell(each),) for each in values])
    columns = tuple(dict.fromkeys(name for each in values for name in each))[:MOST_COLUMNS]
    rows = [tuple(_cell(each[n]) if n in each else "" for n in columns) for each in values]
    return Table(columns, rows)


def _table_of_csv(text: str) -> Table | None:
    rows = [row for row in _csv_rows(text) if row]
    if not rows:
        return None
    columns = tuple(rows[0][:MOST_COLUMNS])
    return Table(columns, [tuple(map(_shortened, row[: len(columns)])) for row in rows[1:]])


def _csv_rows(text: str) -> Iterable[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise Unreadable from error


def _cell(value: Any) -> str:
    return _shortened(in_words(value))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
