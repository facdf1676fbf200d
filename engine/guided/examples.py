"""What an answer, or a part of it, may be ended with.

An unanchored pattern allows any character until the string is closed, so a way to its end cannot be
found by looking at what is allowed. A text that satisfies the pattern is one. In a grammar it is
the texts that stand in it, such as the quotation mark after whatever is quoted.
"""

import json
import re
import string
from collections.abc import Iterable, Iterator
from contextlib import suppress

from engine.guided.schema import Schema, parts

FORMATS = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "a@b.cc",
    "hostname": "a",
    "ipv4": "1.1.1.1",
    "ipv6": "::",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "uri": "a:b",
}
MOST_EXAMPLES = 20
MOST_CHARACTERS = 200
# A quotation mark in a comment or in a pattern begins no text.
_QUOTED = re.compile(r'//[^\n]*|/(?:\\.|[^/\\\n])+/|("(?:\\.|[^"\\\n])*")')
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " ",
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
# Tried in this order where anything may stand.
_ANY = "a1A-_. " + string.printable[:95]


def literals_in_lark(source: str) -> list[str]:
    """Those between quotation marks, each once, wherever they stand."""
    found: dict[str, None] = {}
    for text in _QUOTED.findall(source):
        # JSON has no other escapes, and some that Lark has are not worth more words.
        with suppress(ValueError):
            found[json.loads(text)] = None
    return [text for text in found if text]


def closing_first(literals: Iterable[str]) -> list[str]:
    """First what most likely ends something."""

    def rank(text: str) -> tuple[int, int]:
        last = text[-1]
        for number, group in enumerate(("\"'`", ")]}>;")):
            if last in group:
                return number, len(text)
        # A word is mostly part of a longer one.
        return 4 if last.isalnum() else 3 if last in "([{<" else 2, len(text)

    return sorted(literals, key=rank)


def examples_of(schema: Schema) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for _, part in parts(schema):
        format_ = part.get("format")
        if isinstance(format_, str) and format_ in FORMATS:
            found[FORMATS[format_]] = None
        pattern = part.get("pattern")
        if isinstance(pattern, str) and (example := example_of(pattern)):
            found[example] = None
    return tuple(found)[:MOST_EXAMPLES]


def example_of(pattern: str) -> str | None:
    """A text that contains a match. None: the pattern is beyond what is understood here."""
    try:
        text = _Reader(pattern).alternatives()
    except (IndexError, ValueError):
        return None
    return text if len(text) <= MOST_CHARACTERS else None


class _Reader:
    """Reads a pattern once, and gives for each piece the shortest text it sees."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0

    def alternatives(self) -> str:
        found = [self._sequence()]
        while self._takes("|"):
            found.append(self._sequence())
        return min(found, key=len)

    def _sequence(self) -> str:
        texts: list[str] = []
        while self._place < len(self._pattern) and self._peek() not in "|)":
            text = self._atom()
            texts.append(text * self._least_times())
        return "".join(texts)

    def _atom(self) -> str:
        character = self._next()
        match character:
            case "(":
                if self._takes("?") and not self._takes(":"):
                    raise ValueError("an extension")
                text = self.alternatives()
                if self._next() != ")":
                    raise ValueError("a group without an end")
                return text
            case "[":
                return self._of_class()
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "\\":
                escaped = self._escape()
                return escaped[0] if escaped else ""
        return character

    def _least_times(self) -> int:
        least = 1
        if self._place < len(self._pattern):
            if self._peek() in "*?":
                self._place += 1
                least = 0
            elif self._peek() == "+":
                self._place += 1
            elif self._peek() == "{":
                end = self._pattern.index("}", self._place)
                least = int(self._pattern[self._place + 1 : end].split(",")[0] or 0)
                self._place = end + 1
                if least > MOST_CHARACTERS:
                    raise ValueError("too long")
            self._takes("?")
        return least

    def _of_class(self) -> str:
        is_negated = self._takes("^")
        inside = "".join(self._members())
        if not is_negated:
            return inside[0]
        return next(each for each in _ANY if each not in inside)

    def _members(self) -> Iterator[str]:
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            first = self._next()
            members = self._escape() if first == "\\" else first
            if len(members) == 1 and self._peek() == "-" and self._pattern[self._place + 1] != "]":
                self._place += 1
                last = self._next()
                last = self._escape() if last == "\\" else last
                members = "".join(map(chr, range(ord(members), min(ord(last), 0x17F) + 1)))
            yield members
        self._place += 1

    def _escape(self) -> str:
        """The characters that an escape stands for; none for a border."""
        escaped = self._next()
        if escaped in "bB":
            return ""
        if escaped.lower() in _CLASSES:
            inside = _CLASSES[escaped.lower()]
            if escaped.islower():
                return inside
            return "".join(each for each in _ANY if each not in inside)
        if escaped in "xu":
            length = 2 if escaped == "x" else 4
            self._place += length
            return chr(int(self._pattern[self._place - length : self._place], 16))
        if escaped.isalnum() and escaped not in _CONTROLS:
            raise ValueError("an escape")
        return _CONTROLS.get(escaped, escaped)

    def _peek(self) -> str:
        return self._pattern[self._place]

    def _next(self) -> str:
        self._place += 1
        return self._pattern[self._place - 1]

    def _takes(self, character: str) -> bool:
        is_there = self._pattern[self._place : self._place + 1] == character
        self._place += is_there
        return is_there
