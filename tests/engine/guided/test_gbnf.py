"""llama.cpp's grammars: what is right is taken, and what is wrong is shown at its place."""

import pytest

from engine.errors import GrammarError
from engine.guided.gbnf import read_gbnf
from engine.guided.grammar import GrammarKind
from tests.engine.guided.forms import accepts, compiled

ARITHMETIC = """# a sum
root  ::= term ([-+*/] term)*
term  ::= [0-9]{1,3} | "(" root ")"
"""


@pytest.mark.parametrize(("text", "is_one"), [("1+2*(3-4)", True), ("1+", False), ("1234", False)])
def test_an_answer_is_what_the_grammar_describes(text: str, is_one: bool) -> None:
    assert accepts(compiled(GrammarKind.GBNF, ARITHMETIC), text) == is_one


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('root ::= [a-z]+ "end"', "theend"),
        ('root ::= a-b aB\na-b ::= "x"\naB ::= "y"', "xy"),
        ('root ::= a-b a_b\na-b ::= "x"\na_b ::= "y"', "xy"),
        ('root ::= start\nstart ::= "x"', "x"),
        ('root ::= "a"{,2} "b"{2} "c"{1,}', "abbcc"),
        ('root ::= x |\n  y # or\n  | z\nx ::= "x"\ny ::= "y"\nz ::= ("z"\n  "z")', "zz"),
        ("root ::= . [^a-z]", "\n😀"),
        (r"root ::= [-a] [a-] [^\]] [\\\]]", "--[]"),
        ('root ::= "\\x41\\u00e9\\U0001F600\\t\\r\\n\\\\\\"\\[\\]"', 'Aé😀\t\r\n\\"[]'),
        ('root ::= root "a" | [a-b]', "baa"),
    ],
)
def test_every_character_is_as_good_as_any_other(source: str, text: str) -> None:
    assert accepts(compiled(GrammarKind.GBNF, source), text)


def test_names_in_texts_sets_and_comments_are_no_rules() -> None:
    read_gbnf('root ::= "nothing ::= here" [abc] # no rule\n')


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
        ('root ::= "a" root', "the rule 'root', which needs itself"),
        ('root ::= "a" | x\nx ::= "b" x', "the rule 'x', which needs itself"),
        ('root ::= "\\q"', r"stands for nothing in line 1, column 12"),
        ('root ::= "\\u12"', "4 hexadecimal digits"),
        ('root ::= "\\U00110000"', r"no character U\+110000"),
        ("root ::= [\\uD800-\\uDFFF]", r"no character U\+D800"),
        ("root ::= [z-a]", "ends before it begins"),
        ('root ::= "a"{3,2}', "ends before it begins"),
        ('root ::= "a"{1,100000}', "more than 10,000 times"),
        ('root ::= "a"' + "?" * 200, "100 times over"),
        ("root ::= " + "(" * 200, "more than 100 times"),
        ('root ::= "' + "a" * 200_000 + '"', "more than 100,000 parts"),
        ("root ::= " + "|" * 200_000, "more than 100,000 parts"),
        ("root ::= <think> [a-z]", "token.* in line 1, column 10"),
        ('root ::= "a" ::= "b"', "out of place in line 1, column 14"),
        ('root = "a"', "'::=' is missing"),
    ],
)
def test_a_fault_is_told_with_its_place(source: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        read_gbnf(source)


STOCK: dict[str, tuple[str, list[str], list[str]]] = {
    "equations": (
        r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
""",
        ["1+2=3\n", "a *(b -12)= x \n2=2\n\n"],
        ["1+2", "1+=3\n", "A=1\n"],
    ),
    "lines": (
        r"""
root ::= item+

# Excludes line breaks
item ::= "- " [^\r\n\x0b\x0c\x85\u2028\u2029]+ "\n"
""",
        ["- one\n", "- ä\n- b - c\n"],
        ["one\n", "- \n", "- a\u2028\n"],
    ),
    "an object of JSON": (
        r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
""",
        ["{}", '{"a": [1, -2.5e3, "x\\u00e9\\n"], "b": {"c": null}}', '{"ä": "😀"}\n  '],
        ["[]", '{"a": 01}', '{"a": "\x01"}', '{"a" 1}'],
    ),
    "rows of JSON": (
        r"""
root   ::= arr
value  ::= object | array | string | number | ("true" | "false" | "null") ws
arr  ::=
  "[\n" ws (
            value
    (",\n" ws value)*
  )? "]"
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [1-9] [0-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
""",
        ['[\n1,\n[2, 3],\n{"a": "b"}]', "[\n]"],
        ["[1]", "[\n1, 2]", "{}"],
    ),
    "a game": (
        r"""
# A game in PGN.
root   ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move   ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn   ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
""",
        ["1. e4 e5\n2. Nf3 Nc6\n", "1. d4 d5\n2. c4 dxc4\n3. O-O-O Qxd4#\n"],
        ["1. e4 e5\n", "1. e4\n2. e5 e6\n", "1. e9 e5\n2. a1 a2\n"],
    ),
    "characters of Japanese": (
        r"""
# Greetings
root   ::= jp-char+ ([ \t\n] jp-char+)*
jp-char ::= hiragana | katakana | punctuation | cjk
hiragana ::= [ぁ-ゟ]
katakana ::= [ァ-ヿ]
punctuation ::= [、-〾]
cjk ::= [一-鿿]
""",
        ["日本語", "こんにちは 世界", "カタカナ、ひらがな。"],
        ["hello", "日本 ", "日本a"],
    ),
    "English words": (
        r"""
root ::= en-char+ ([ \t\n] en-char+)*
en-char ::= letter | digit | punctuation
letter ::= [a-zA-Z]
digit ::= [0-9]
punctuation ::= [!"#$%&'()*+,-./:;<=>?@[\\\]^_`{|}~]
""",
        ["Hello, world!", "it's [a] \\ test\n123"],
        ["naïve", "two  spaces", " x"],
    ),
    "a program": (
        r"""
root ::= (declaration)*

declaration ::= dataType identifier "(" parameter? ")" "{" statement* "}"

dataType  ::= "int" ws | "float" ws | "char" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*

parameter ::= dataType identifier

statement ::=
    ( dataType identifier ws "=" ws expression ";" ) |
    ( identifier ws "=" ws expression ";" ) |
    ( identifier ws "(" argList? ")" ";" ) |
    ( "return" ws expression ";" ) |
    ( "while" "(" condition ")" "{" statement* "}" ) |
    ( "for" "(" forInit ";" ws condition ";" ws forUpdate ")" "{" statement* "}" ) |
    ( "if" "(" condition ")" "{" statement* "}" ("else" "{" statement* "}")? ) |
    ( singleLineComment ) |
    ( multiLineComment )

forInit ::= dataType identifier ws "=" ws expression | identifier ws "=" ws expression
forUpdate ::= identifier ws "=" ws expression

condition ::= expression relationOperator expression
relationOperator ::= ("<=" | "<" | "==" | "!=" | ">=" | ">")

expression ::= term (("+" | "-") term)*
term ::= factor(("*" | "/") factor)*

factor ::= identifier | number | unaryTerm | funcCall | parenExpression
unaryTerm ::= "-" factor
funcCall ::= identifier "(" argList? ")"
parenExpression ::= "(" ws expression ws ")"

argList ::= expression ("," ws expression)*

number ::= [0-9]+

singleLineComment ::= "//" [^\n]* "\n"
multiLineComment ::= "/*" ( [^*] | ("*" [^/]) )* "*/"

ws ::= ([ \t\n]+)
""",
        [
            "int main(){return 0;}",
            "int f(int x){float y = x*2+g(x, 1);while(y<10){y = y+1;}}",
            "int f(){// hi\n/* a * b */if(x==y){f (x);}else{return -( x );}}",
            "",
            "int f(){returned = 1;int intx = intercept(a);}",
            "int f(){for(i = 0; i<9; i = i+1){}}",
        ],
        ["int main(){return 0}", "main(){}", "int f(){x=1;}", "int f(){/* }"],
    ),
    "escapes": (
        r"""
root ::= "\x41\u00e9\U0001F600 " [\u0041-\u005A\x61\U0001F600-\U0001F610]+ "\t\\\"\[\]"
""",
        ['Aé😀 ZA😅a\t\\"[]'],
        ['Aé😀 b\t\\"[]'],
    ),
}
"""Of the kind that people have lying about: what each takes, and what not."""


@pytest.mark.parametrize("name", STOCK)
def test_grammars_as_people_write_them_are_taken_at_their_word(name: str) -> None:
    source, right, wrong = STOCK[name]
    form = compiled(GrammarKind.GBNF, source)
    assert [text for text in right if not accepts(form, text)] == []
    assert [text for text in wrong if accepts(form, text)] == []
