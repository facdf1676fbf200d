"""A grammar divided into lexemes, and which of them may follow which.

Sets of lexemes are bits, by their number in a list.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.guided.automaton import Patience
from engine.guided.productions import Node


@dataclass(frozen=True, slots=True, eq=False)
class Lexeme:
    """All texts of a regular node but the empty one."""

    node: Node
    is_nullable: bool
    """The node has the empty text, too."""


@dataclass(frozen=True, slots=True)
class Row:
    """What comes one after the other."""

    parts: "tuple[Piece, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    options: "tuple[Piece, ...]"


@dataclass(frozen=True, slots=True)
class Times:
    body: "Piece"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """Of a rule that is no lexeme."""

    name: str


Piece = Lexeme | Row | Either | Times | Call
Pieces = dict[str, Piece]


class Following:
    """`begin`: the lexemes with which an answer may begin. `after[n]`: those after lexeme n."""

    def __init__(
        self, pieces: Pieces, root: str, lexemes: list[Lexeme], patience: Patience
    ) -> None:
        """Raises GrammarError when there is no patience left."""
        self._patience = patience
        self._bits = {lexeme: 1 << number for number, lexeme in enumerate(lexemes)}
        self._nullable: set[str] = set()
        self._first = dict.fromkeys(pieces, 0)
        while any([self._grow_first(name, piece) for name, piece in pieces.items()]):
            pass
        self.after = [0] * len(lexemes)
        self._after_rule = dict.fromkeys(pieces, 0)
        self._has_grown = True
        while self._has_grown:
            self._has_grown = False
            for name, piece in pieces.items():
                self._note(piece, self._after_rule[name])
        self.begin = self._first[root]

    def _grow_first(self, name: str, piece: Piece) -> bool:
        first, is_nullable = self._begins(piece)
        if first == self._first[name] and is_nullable == (name in self._nullable):
            return False
        self._first[name] = first
        self._nullable |= {name} if is_nullable else set()
        return True

    def _begins(self, piece: Piece) -> tuple[int, bool]:
        """The first lexemes, and whether it may be nothing."""
        self._patience.take()
        match piece:
            case Lexeme():
                return self._bits[piece], False
            case Row(parts):
                first = 0
                for part in parts:
                    more, is_nullable = self._begins(part)
                    first |= more
                    if not is_nullable:
                        return first, False
                return first, True
            case Either(options):
                first, may_be_nothing = 0, False
                for option in options:
                    more, is_nullable = self._begins(option)
                    first |= more
                    may_be_nothing = may_be_nothing or is_nullable
                return first, may_be_nothing
            case Times(body, least):
                first, is_nullable = self._begins(body)
                return first, is_nullable or least == 0
            case Call(name):
                return self._first[name], name in self._nullable

    def _note(self, piece: Piece, after: int) -> None:
        match piece:
            case Lexeme():
                number = self._bits[piece].bit_length() - 1
                self._has_grown = self._has_grown or bool(after & ~self.after[number])
                self.after[number] |= after
            case Row(parts):
                for part in reversed(parts):
                    self._note(part, after)
                    first, is_nullable = self._begins(part)
                    after = first | after if is_nullable else first
            case Either(options):
                for option in options:
                    self._note(option, after)
            case Times(body, _, most):
                self._note(body, after if most == 1 else after | self._begins(body)[0])
            case Call(name):
                self._has_grown = self._has_grown or bool(after & ~self._after_rule[name])
                self._after_rule[name] |= after


def each_bit(bits: int) -> Iterator[int]:
    """The numbers of those that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def lexemes_of(pieces: Pieces) -> list[Lexeme]:
    """Each once."""
    return list(dict.fromkeys(each for piece in pieces.values() for each in _lexemes(piece)))


def _lexemes(piece: Piece) -> Iterator[Lexeme]:
    match piece:
        case Lexeme():
            yield piece
        case Row(parts) | Either(parts):
            for part in parts:
                yield from _lexemes(part)
        case Times(body):
            yield from _lexemes(body)


def row(parts: list[Piece]) -> Piece:
    parts = [part for part in parts if part != Row(())]
    return parts[0] if len(parts) == 1 else Row(tuple(parts))


def either(options: list[Piece]) -> Piece:
    return options[0] if len(options) == 1 else Either(tuple(options))


def calls(piece: Piece) -> Iterator[str]:
    match piece:
        case Call(name):
            yield name
        case Row(parts) | Either(parts):
            for part in parts:
                yield from calls(part)
        case Times(body):
            yield from calls(body)
