"""llama.cpp's grammars: what is right is taken, and what is wrong is shown at its place."""

import pytest

from engine.errors import GrammarError
from engine.guided.gbnf import lark_of
from engine.guided.grammar import GrammarKind
from tests.engine.guided.forms import accepts, compiled

ARITHMETIC = """# a sum
root  ::= term ([-+*/] term)*
term  ::= [0-9]{1,3} | "(" root ")"
"""


@pytest.mark.parametrize(("text", "is_one"), [("1+2*(3-4)", True), ("1+", False), ("1234", False)])
def test_an_answer_is_what_the_grammar_describes(text: str, is_one: bool) -> None:
    assert accepts(compiled(GrammarKind.GBNF, ARITHMETIC), text) == is_one


def test_names_in_texts_sets_and_comments_are_no_rules() -> None:
    lark_of('root ::= "nothing ::= here" [abc] # no rule\n')


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('root ::= "a" b', r"no rule 'b', which line 1, column 14"),
        ('root ::= "a"\n\nx ::= root\nx ::= "b"', r"'x' is there twice.*line 4, column 1"),
        ('top ::= "a"', "no rule 'root'"),
        ('root ::= "a', r"line 1"),
        ("root ::= [a-", r"line 1"),
        ('root ::= ("a"', r"line 1, column 14"),
        ("", "no rule 'root'"),
    ],
)
def test_a_fault_is_told_with_its_place(source: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        lark_of(source)
