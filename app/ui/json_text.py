"""JSON as a model wrote it, perhaps not to its end: read as far as it goes, or laid out in lines.

Numbers are kept as they are spelled, and a text that is laid out differs in its spaces only.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

DEEPEST = 40
"""Levels that are indented further than the one above."""

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)\Z")
HALF = re.compile(r"\\u[dD][89a-fA-F]")
CLOSING = {"{": "}", "[": "]"}


class Exact(str):
    """A number, spelled as in the text."""

    __slots__ = ()


class Unreadable(Exception):
    """There is nothing in it that could be shown but the text itself."""


def read(text: str) -> Any:
    """The value. Raises Unreadable."""
    try:
        value = json.loads(text, parse_int=Exact, parse_float=Exact)
        return _whole(value) if HALF.search(text) else value
    except (ValueError, RecursionError) as error:
        raise Unreadable from error


def read_beginning(text: str) -> Any:
    """The value as far as it is there; a name without a value is left out. Raises Unreadable."""
    return read(_completed(text))


def laid_out(text: str) -> str:
    """In lines with indents; also when it is cut short."""
    written: list[str] = []
    depth = 0
    before = ""
    for token in _tokens(text):
        is_end = token in ("}", "]")
        depth -= is_end
        is_empty = is_end and CLOSING.get(before) == token
        if (is_end or before == "," or before in CLOSING) and not is_empty:
            written.append("\n" + "  " * min(max(depth, 0), DEEPEST))
        written.append(": " if token == ":" else token)
        depth += token in CLOSING
        before = token
    return "".join(written)


def _whole(value: Any) -> Any:
    """Without halves of characters, which an escape may spell and no page can show."""
    if isinstance(value, dict):
        return {_whole(name): _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, str) and not isinstance(value, Exact):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _tokens(text: str) -> Iterator[str]:
    return (match[0] for match in TOKEN.finditer(text))


def _completed(text: str) -> str:
    """Cut back to what is whole, but for a text that is being written, and closed."""
    open_ones: list[str] = []
    whole_until = 0
    is_name = False
    for match in TOKEN.finditer(text):
        token = match[0]
        is_last = match.end() == len(text)
        if token in CLOSING:
            open_ones.append(token)
        elif token in ("}", "]"):
            if not open_ones:
                raise Unreadable
            open_ones.pop()
        elif token == ",":
            # A name comes next, or another value.
            is_name = bool(open_ones) and open_ones[-1] == "{"
            continue
        elif token == ":":
            is_name = False
            continue
        elif is_name:
            continue
        elif token[0] == '"' and (len(token) == 1 or not _is_closed(token)):
            begun = HALF_ESCAPE.sub(lambda half: half[0][: half.start(1) - half.start()], text)
            return f'{begun}"{_closed(open_ones)}'
        elif token[0] != '"' and is_last and open_ones:
            # A number or a word that may go on.
            break
        is_name = token == "{"
        whole_until = match.end()
    if not whole_until:
        raise Unreadable
    # Nothing was opened or closed since.
    return text[:whole_until] + _closed(open_ones)


def _is_closed(token: str) -> bool:
    inner = token[1:-1]
    num_slashes = len(inner) - len(inner.rstrip("\\"))
    return token.endswith('"') and num_slashes % 2 == 0


def _closed(open_ones: list[str]) -> str:
    return "".join(CLOSING[each] for each in reversed(open_ones))
