"""Pieces of a grammar as llguidance reads them, in its dialect of Lark."""

from engine.guided.lexemes import Lexer
from engine.guided.pieces import Call, Either, Lexeme, Piece, Pieces, Row, Times
from engine.guided.productions import (
    Characters,
    Choice,
    Node,
    Ranges,
    Reference,
    Repeat,
    Rules,
    Sequence,
    with_loops,
)

NOT_NOTHING = " & /(?s:.)+/"


def lark_of(rules: Rules, root: str) -> str:
    """The same grammar for llguidance. Raises GrammarError when it is too complicated, and
    RecursionError when it is nested too deeply."""
    rules = with_loops(rules)
    return LarkWriter(rules, Lexer(rules, root).pieces(), root).write()


class LarkWriter:
    """Names of its own: those of the source may be none in Lark, or one for two rules."""

    def __init__(self, rules: Rules, pieces: Pieces, root: str) -> None:
        self._rules = rules
        self._pieces = pieces
        self._names = {name: f"r{number}" for number, name in enumerate(pieces)} | {root: "start"}
        self._terminals: dict[str, str] = {}

    def write(self) -> str:
        lines = [f"{self._names[name]}: {self._piece(each)}" for name, each in self._pieces.items()]
        lines += [f"{name}: {pattern}" for pattern, name in self._terminals.items()]
        return "\n".join(lines)

    def _piece(self, piece: Piece) -> str:
        match piece:
            case Lexeme(node, is_nullable):
                pattern = f"/{self._pattern(node)}/" + (NOT_NOTHING if is_nullable else "")
                return self._terminals.setdefault(pattern, f"T{len(self._terminals)}")
            case Row(()):
                return '""'
            case Row(parts):
                return "(" + " ".join(map(self._piece, parts)) + ")"
            case Either(options):
                return "(" + " | ".join(map(self._piece, options)) + ")"
            case Times(body, least, most):
                return f"({self._piece(body)}){_times(least, most)}"
            case Call(name):
                return self._names[name]

    def _pattern(self, node: Node) -> str:
        match node:
            case Characters(ranges):
                return _set(ranges)
            case Sequence(parts):
                return "(?:" + "".join(map(self._pattern, parts)) + ")"
            case Choice(options):
                return "(?:" + "|".join(map(self._pattern, options)) + ")"
            case Repeat(body, least, most):
                return "(?:" + self._pattern(body) + ")" + _times(least, most)
            case Reference(name):
                return self._pattern(self._rules[name])


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _set(ranges: Ranges) -> str:
    return "[" + "".join(f"{_code(first)}-{_code(last)}" for first, last in ranges) + "]"


def _code(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{{{code:X}}}"
