"""Grammars of characters: whatever llama.cpp would take is taken, and nothing else."""

import itertools
import random
from functools import cache
from time import thread_time

import llguidance
import pytest

from engine.errors import GrammarError
from engine.guided import compiler
from engine.guided.gbnf import ROOT, read_gbnf
from engine.guided.grammar import GrammarKind
from engine.guided.lexemes import Lexer
from engine.guided.pieces import lexemes_of
from engine.guided.productions import (
    Characters,
    Choice,
    Node,
    Reference,
    Repeat,
    Sequence,
    with_loops,
)
from tests.engine.guided.forms import accepts, compiled

LETTERS = "abc"
TEXTS = ["".join(each) for n in range(6) for each in itertools.product(LETTERS, repeat=n)]


def texts_of(source: str, longest: int) -> set[str]:
    """All texts of a grammar up to a length, found by trying: slow, and easy to believe."""
    rules = read_gbnf(source)
    known: dict[str, frozenset[str]] = {name: frozenset() for name in rules}

    def texts(node: Node) -> frozenset[str]:
        match node:
            case Characters(ranges):
                return frozenset(
                    each for each in LETTERS if any(a <= ord(each) <= b for a, b in ranges)
                )
            case Sequence(parts):
                found = frozenset([""])
                for part in parts:
                    found = joined(found, texts(part))
                return found
            case Choice(options):
                return frozenset().union(*map(texts, options))
            case Repeat(body, least, most):
                once = texts(body)
                found = frozenset([""])
                for _ in range(least):
                    found = joined(found, once)
                for _ in range(longest + 1 if most is None else most - least):
                    found |= joined(found, once)
                return found
            case Reference(name):
                return known[name]

    @cache
    def joined(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
        return frozenset(a + b for a in first for b in second if len(a + b) <= longest)

    before = None
    while before != known:
        before = dict(known)
        known |= {name: known[name] | texts(node) for name, node in rules.items()}
    return set(known[ROOT])


def some_grammar(choose: random.Random) -> str:
    """Three rules, each of which may need the others and itself."""
    names = ["root", "x", "y"]

    def part(depth: int) -> str:
        kind = choose.randrange(9 if depth else 5)
        if kind < 2:
            return '"' + "".join(choose.choices(LETTERS, k=choose.randint(1, 3))) + '"'
        if kind == 2:
            return choose.choice(["[ab]", "[^a]", "[a-c]", "[c]"])
        if kind < 5:
            return choose.choice(names[1:])
        return "(" + options(depth - 1) + ")" + choose.choice(["", "*", "+", "?", "{2}", "{1,3}"])

    def options(depth: int) -> str:
        rows = (" ".join(part(depth) for _ in range(choose.randint(1, 3))) for _ in range(2))
        return " | ".join(itertools.islice(rows, choose.randint(1, 2)))

    # Each has a way to end.
    return "\n".join(f'{name} ::= {options(2)} | "{choose.choice(LETTERS)}"' for name in names)


@pytest.mark.parametrize("seed", range(60))
def test_a_grammar_accepts_its_texts_and_no_others(seed: int) -> None:
    source = some_grammar(random.Random(seed))
    form = compiled(GrammarKind.GBNF, source)
    wanted = texts_of(source, 5)
    assert {text for text in TEXTS if accepts(form, text)} == wanted


@pytest.mark.parametrize(
    ("source", "num_lexemes"),
    [
        # No recursion: all of it is one.
        ('root ::= [a-z]+ "end"', 1),
        ('root ::= word ("," word)*\nword ::= [a-z]+', 1),
        # A word ends where a bracket begins.
        ('root ::= "(" word root? ")"\nword ::= [a-z]+', 2),
        # What may be mistaken for each other is in one, or, with recursion, each letter by itself.
        ('root ::= "(" [a-z]+ "a" root? ")"', 2),
        ('root ::= "(" word "a" root? ")"\nword ::= [a-z] word [a-z] | [a-z]', 6),
        # A rule that goes on with itself is a repetition.
        ('root ::= "(" word "a" root? ")"\nword ::= [a-z] word | [a-z]', 2),
        ('root ::= "(" word "a" root? ")"\nword ::= word [a-z] | word [0-9] | [a-z]', 2),
        ('root ::= root "," [a-z]+ | [a-z]+', 1),
    ],
)
def test_a_lexeme_is_as_long_as_can_be(source: str, num_lexemes: int) -> None:
    assert len(lexemes_of(Lexer(with_loops(read_gbnf(source)), ROOT).pieces())) == num_lexemes


@pytest.mark.parametrize(
    "source",
    [
        "root ::= " + " | ".join(f'[a-z]+ "{number}" root' for number in range(400)) + ' | "."',
        "root ::= " + " | ".join(f'"w{number}" root' for number in range(5_000)) + ' | "."',
        "\n".join(["root ::= r0 root | r0", *(f"r{n} ::= r{n + 1} r{n + 1}" for n in range(30))])
        + '\nr30 ::= "x"',
        "\n".join(["root ::= r0 root | r0", *(f"r{n} ::= [a-z] r{n + 1}" for n in range(3_000))])
        + '\nr3000 ::= "x"',
        "\n".join(["root ::= r0", *(f"r{n} ::= r{n + 1} r{n + 1}" for n in range(40))])
        + '\nr40 ::= "x"',
    ],
    ids=["alike", "many", "doubled", "deep", "doubled without recursion"],
)
def test_what_takes_too_long_to_look_at_is_refused_in_time(source: str) -> None:
    began = thread_time()
    with pytest.raises(GrammarError, match="make it"):
        Lexer(read_gbnf(source), ROOT).pieces()
    assert thread_time() - began < 2


def test_what_a_model_could_not_follow_is_refused_or_said(monkeypatch: pytest.MonkeyPatch) -> None:
    few = llguidance.LLParserLimits(step_max_items=20)
    monkeypatch.setattr(compiler, "LIMITS", few)
    with pytest.raises(GrammarError, match="too much may come next, in too many ways"):
        compiled(GrammarKind.GBNF, 'root ::= x "." root | "."\nx ::= . x [ab] | . x [ac] | "c"')
