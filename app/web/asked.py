"""Names and paths as the page gives them: what is none is refused in a sentence."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from engine.errors import UsageError

LONGEST_TEXT = 4096
LARGEST_NUMBER = 2**63 - 1
NO_WORDS = (
    "This has a character that is only half of one, or a number that is larger than"
    f" {LARGEST_NUMBER:,}: nothing here has one."
)
NO_PATH = (
    "This is no name and no path: it has characters that none has, or is longer than"
    f" {LONGEST_TEXT:,} characters."
)
_HALVES = re.compile("[\ud800-\udfff]")
"""Of pairs: nobody types a name with one."""


def is_sound(given: Any) -> bool:
    """Whether all of what came as JSON can be a text or a number of the tables, however deep."""
    left = [given]
    while left:
        match left.pop():
            case dict() as pairs:
                left += [*pairs.keys(), *pairs.values()]
            case list() as values:
                left += values
            case str() as text if _HALVES.search(text):
                return False
            case int() as number if abs(number) > LARGEST_NUMBER:
                return False
    return True


def text_of(given: dict[str, Any], name: str) -> str:
    """Raises UsageError for what is no name and no path."""
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError("There is nothing to do it with: give a name, a text or a path.")
    if len(value) > LONGEST_TEXT or "\0" in value or _HALVES.search(value):
        raise UsageError(NO_PATH)
    return value


def path_typed(given: dict[str, Any], name: str) -> Path:
    """Where a file lies, also by its address as browsers and file managers give it."""
    text = text_of(given, name).strip().strip('"')
    if text.lower().startswith("file:"):
        return _path_of_address(text)
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        user = Path(text).parts[0]
        raise UsageError(
            f"The folder of {user} is not known: give the path from the root of the disk on."
        ) from error


def path_named(path: str) -> Path:
    """A path that the page was given before; its name may be no text on some systems."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise UsageError(NO_PATH) from error
    if "\0" in path:
        raise UsageError(NO_PATH)
    return Path(path)


def _path_of_address(text: str) -> Path:
    try:
        address = urlsplit(text)
    except ValueError as error:
        raise UsageError("This address cannot be read: give the path of the file.") from error
    if address.netloc not in ("", "localhost"):
        raise UsageError(f"This file is on another machine ({address.netloc}): copy it here first.")
    path = url2pathname(address.path)
    if "\0" in path or _HALVES.search(path):
        raise UsageError(NO_PATH)
    return Path(path)
