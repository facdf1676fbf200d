"""Ready-made forms for answers: each a file of this folder, and of a folder of the user's own.

A file says what it is, in which language it is written, and texts that it must accept and refuse:

    title = "Rating from 1 to 5"
    description = "One digit."
    kind = "choice"               json_schema, regex, choice, gbnf or lark
    source = '["1", "2", "3", "4", "5"]'
    accepted = ["1", "5"]
    refused = ["0", "3.5"]
    medium = "text"               text, json, csv, markdown, mermaid or sql: how it is shown;
                                  without it JSON for a json_schema, and else text
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SUFFIX = ".toml"
KINDS = ("json_schema", "regex", "choice", "gbnf", "lark")
MEDIA = ("", "text", "json", "csv", "markdown", "mermaid", "sql")


class FormFileError(Exception):
    """A file is no form; the sentence names it and says why."""


@dataclass(frozen=True, slots=True)
class ReadyForm:
    """`name` is the file's, without its end. `medium` may be empty."""

    name: str
    title: str
    description: str
    kind: str
    source: str
    accepted: tuple[str, ...]
    refused: tuple[str, ...]
    medium: str = ""


@cache
def ready_forms() -> Mapping[str, ReadyForm]:
    """Those that come with the app, by name."""
    return forms_in(Path(__file__).parent)


def forms_in(folder: Path) -> Mapping[str, ReadyForm]:
    """Raises FormFileError for the first file that is none. Empty when there is no such folder."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return {form.name: form for form in map(read_form_file, files)}


def read_form_file(path: Path) -> ReadyForm:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FormFileError(f"{path.name} cannot be read ({error.strerror}).") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormFileError(f"{path.name} is no form: it is not TOML ({error}).") from error
    kind = _text(path, values, "kind")
    if kind not in KINDS:
        raise FormFileError(f"{path.name} is no form: its kind must be one of {', '.join(KINDS)}.")
    medium = _text(path, values, "medium", "")
    if medium not in MEDIA:
        raise FormFileError(
            f"{path.name} is no form: its medium must be one of {', '.join(MEDIA[1:])}."
        )
    return ReadyForm(
        path.stem,
        _text(path, values, "title"),
        _text(path, values, "description", ""),
        kind,
        # A source over several lines begins and ends with a line break of its file.
        _text(path, values, "source").strip("\n"),
        _texts(path, values, "accepted"),
        _texts(path, values, "refused"),
        medium,
    )


def _text(path: Path, values: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise FormFileError(f"{path.name} is no form: {name!r} must be a text.")
    return value


def _texts(path: Path, values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = values.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise FormFileError(f"{path.name} is no form: {name!r} must be a list of texts.")
    return tuple(value)
