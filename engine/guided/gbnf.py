"""llama.cpp's grammars, read rule by rule, with the place of a fault in them.

A rule ends with its line, unless the line ends in `::=` or `|` or is inside brackets. What is
right here is what llama.cpp takes, but for its references to tokens: a token is no text.
"""

import re

from engine.errors import GrammarError
from engine.guided.productions import (
    LAST_CODE,
    Characters,
    Choice,
    Node,
    Reference,
    Repeat,
    Rules,
    Sequence,
    ranges_of,
    rules_with_an_end,
)

ROOT = "root"
MOST_TIMES = 10_000
MOST_NESTED = 100
# With more of them, reading and dividing them would take longer than a form may take.
MOST_PARTS = 100_000
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SPACES = re.compile(r"(?:[ \t]|#[^\n\r]*)*")
_SPACES_AND_LINES = re.compile(r"(?:[ \t\n\r]|#[^\n\r]*)*")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"} | {each: each for each in '"\\[]'}
_NUM_DIGITS = {"x": 2, "u": 4, "U": 8}


def read_gbnf(source: str) -> Rules:
    """Raises GrammarError with the line and the column."""
    reader = _Reader(source)
    rules = reader.rules()
    if ROOT not in rules:
        raise GrammarError("The grammar has no rule 'root', with which an answer begins: add it.")
    for name, place in reader.used.items():
        if name not in rules:
            raise GrammarError(
                f"There is no rule {name!r}, which {_where(source, place)} refers to: add it."
            )
    ending = rules_with_an_end(rules)
    for name in rules:
        if name not in ending:
            raise GrammarError(
                f"No text is long enough for the rule {name!r}, which needs itself: give it a way"
                " to end."
            )
    return rules


def _where(source: str, place: int) -> str:
    line = source.count("\n", 0, place) + 1
    column = place - (source.rfind("\n", 0, place) + 1) + 1
    return f"line {line}, column {column}"


class _Reader:
    """Goes through a source once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._place = 0
        self._depth = 0
        self._num_parts = 0
        self.used: dict[str, int] = {}
        """Names that are referred to, and where first."""

    def rules(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        self._skip(_SPACES_AND_LINES)
        while self._peek():
            place = self._place
            name = self._name()
            if name in rules:
                raise GrammarError(
                    f"The rule {name!r} is there twice, the second time in"
                    f" {_where(self._source, place)}: give one of them another name."
                )
            self._skip(_SPACES)
            if not self._takes("::="):
                raise self._fault("'::=' is missing after the name of a rule")
            self._skip(_SPACES_AND_LINES)
            rules[name] = self._choice()
            if self._peek() not in ("", "\n", "\r"):
                raise self._fault("something is out of place")
            self._skip(_SPACES_AND_LINES)
        return rules

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._goes_on("|"):
            self._skip(_SPACES_AND_LINES)
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _goes_on(self, sign: str) -> bool:
        """Whether the sign comes, perhaps in the next line."""
        place = self._place
        self._skip(_SPACES_AND_LINES)
        if self._takes(sign):
            return True
        self._place = place
        return False

    def _sequence(self) -> Node:
        parts: list[Node] = []
        self._count()
        while (part := self._part()) is not None:
            self._skip_between()
            num_times = 0
            while (times := self._times()) is not None:
                num_times += 1
                if num_times > MOST_NESTED:
                    raise self._fault(f"something is repeated more than {MOST_NESTED} times over")
                part = Repeat(part, *times)
                self._skip_between()
            parts.append(part)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _skip_between(self) -> None:
        self._skip(_SPACES_AND_LINES if self._depth else _SPACES)

    def _count(self) -> None:
        """One more part: an option, a character, or a reference."""
        self._num_parts += 1
        if self._num_parts > MOST_PARTS:
            raise self._fault(f"there are more than {MOST_PARTS:,} parts")

    def _part(self) -> Node | None:
        begin = self._peek()
        if begin == '"':
            return self._literal()
        if begin == "[":
            self._count()
            return self._set()
        if begin == "(":
            return self._group()
        if begin == ".":
            self._place += 1
            self._count()
            return Characters(ranges_of([], is_negated=True))
        if begin in ("<", "!"):
            raise self._fault("a reference to a token cannot be kept to; write its text instead")
        if begin and _NAME.match(begin):
            self._count()
            place = self._place
            name = self._name()
            self.used.setdefault(name, place)
            return Reference(name)
        return None

    def _literal(self) -> Node:
        self._place += 1
        text = ""
        while not self._takes('"'):
            text += chr(self._character("a text has no end"))
            self._count()
        return Sequence(tuple(Characters(ranges_of([(ord(each),) * 2])) for each in text))

    def _set(self) -> Node:
        self._place += 1
        is_negated = self._takes("^")
        pairs: list[tuple[int, int]] = []
        while not self._takes("]"):
            first = last = self._character("a set of characters has no end")
            if self._peek() == "-" and self._source[self._place + 1 : self._place + 2] != "]":
                self._place += 1
                last = self._character("a set of characters has no end")
            if last < first:
                raise self._fault("a range ends before it begins")
            pairs.append((first, last))
        ranges = ranges_of(pairs, is_negated=is_negated)
        if not ranges:
            raise self._fault("a set has no character")
        return Characters(ranges)

    def _group(self) -> Node:
        self._place += 1
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._fault(f"brackets are in each other more than {MOST_NESTED} times")
        self._skip(_SPACES_AND_LINES)
        node = self._choice()
        self._skip(_SPACES_AND_LINES)
        if not self._takes(")"):
            raise self._fault("')' is missing")
        self._depth -= 1
        return node

    def _times(self) -> tuple[int, int | None] | None:
        if self._takes("*"):
            return 0, None
        if self._takes("+"):
            return 1, None
        if self._takes("?"):
            return 0, 1
        if not self._takes("{"):
            return None
        self._skip(_SPACES_AND_LINES)
        # llama.cpp takes {,n} for {0,n}.
        least = 0 if self._peek() == "," else self._number()
        most: int | None = least
        self._skip(_SPACES_AND_LINES)
        if self._takes(","):
            self._skip(_SPACES_AND_LINES)
            most = None if self._peek() == "}" else self._number()
            self._skip(_SPACES_AND_LINES)
        if not self._takes("}"):
            raise self._fault("'}' is missing")
        if most is not None and most < least:
            raise self._fault("a repetition ends before it begins")
        if max(least, most or 0) > MOST_TIMES:
            raise self._fault(f"something is repeated more than {MOST_TIMES:,} times")
        return least, most

    def _character(self, without_end: str) -> int:
        """One character of a text or a set, perhaps escaped."""
        character = self._peek()
        if not character:
            raise self._fault(without_end)
        self._place += 1
        if character != "\\":
            code = ord(character)
        elif (escaped := self._peek()) in _NUM_DIGITS:
            num_digits = _NUM_DIGITS[escaped]
            digits = self._source[self._place + 1 : self._place + 1 + num_digits]
            if not re.fullmatch(rf"[0-9A-Fa-f]{{{num_digits}}}", digits):
                raise self._fault(f"\\{escaped} needs {num_digits} hexadecimal digits")
            code = int(digits, 16)
            self._place += 1 + num_digits
        elif escaped in _ESCAPED and escaped:
            code = ord(_ESCAPED[escaped])
            self._place += 1
        else:
            raise self._fault(f"\\{escaped} stands for nothing")
        if code > LAST_CODE or 0xD800 <= code <= 0xDFFF:
            raise self._fault(f"there is no character U+{code:04X}")
        return code

    def _name(self) -> str:
        found = _NAME.match(self._source, self._place)
        if found is None:
            raise self._fault("the name of a rule is missing")
        self._place = found.end()
        return found[0]

    def _number(self) -> int:
        found = _NUMBER.match(self._source, self._place)
        if found is None:
            raise self._fault("a number is missing")
        self._place = found.end()
        return int(found[0])

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._source, self._place)
        assert found is not None, "the pattern matches nothing, too"
        self._place = found.end()

    def _peek(self) -> str:
        """Empty at the end."""
        return self._source[self._place : self._place + 1]

    def _takes(self, text: str) -> bool:
        is_there = self._source.startswith(text, self._place)
        self._place += len(text) * is_there
        return is_there

    def _fault(self, what: str) -> GrammarError:
        return GrammarError(
            f"The grammar cannot be read: {what} in {_where(self._source, self._place)}."
        )
