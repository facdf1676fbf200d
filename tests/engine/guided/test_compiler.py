"""What can be enforced is, what cannot is refused with its place, and nothing takes long."""

import asyncio
import gc
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter, process_time, thread_time
from typing import Any

import pytest

from engine.errors import EngineDead, GrammarError
from engine.guided import compiler as compiler_module
from engine.guided.compiler import COMPILE_SECONDS, GrammarCompiler
from engine.guided.grammar import Grammar, GrammarKind
from tests.engine.guided.forms import accepts, after, compiled, of_schema
from tests.fakes import ByteTokenizer

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ('{"name": "Ann", "age": 3}', True),
        ('{"name":"Ann","age":3}', True),
        ('{\n  "name": "Änn <td> <|im_end|> 😀",\n  "age": 3\n}', True),
        ('{"name": "Ann", "age": -3}', False),
        ('{"name": "Ann"}', False),
        ('{"age": 3, "name": "Ann"}', False),
        ('{"name": "Ann", "age": 3, "x": 1}', False),
        ('{"name": "Ann", "age": 3} ', False),
        ('{"name": "Ann",   "age": 3}', False),
        ('{"name": "A\nn", "age": 3}', False),
    ],
)
def test_an_answer_satisfies_its_schema(text: str, is_one: bool) -> None:
    assert accepts(of_schema(PERSON), text) == is_one


@pytest.mark.parametrize("num_spaces", [1, 20])
def test_white_space_is_bounded(num_spaces: int) -> None:
    assert after(of_schema(PERSON), "{\n" + " " * num_spaces) is not None
    assert after(of_schema(PERSON), "{\n" + " " * 21) is None
    assert after(of_schema(PERSON), "{\n\n") is None


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"not": {}}, "'not' cannot be seen to .* at the top; leave that out,"),
        ({"allOf": [{"not": {"not": {}}}]}, "'not' .* at #/allOf/0;"),
        ({"if": {}, "uniqueItems": True}, "'if' and 'uniqueItems' .* at the top;"),
        (
            {"properties": {"a": {"oneOf": [{"minimum": 1}, {"maximum": 2}]}}},
            "'oneOf' .* at #/properties/a; write 'anyOf'",
        ),
        (
            {"properties": {"a": {}, "b": {}}, "minProperties": 1},
            "'minProperties' .* at the top; make",
        ),
        (
            {"patternProperties": {"a": {}, "b": {}}},
            "'patternProperties', 'a' and 'b' at the top; write",
        ),
        ({"properties": {"a": {"items": {"uniqueItems": True}}}}, "at #/properties/a/items;"),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/x"}},
                "$defs": {"y": {}, "x": {"type": "string", "format": "idn-email"}},
            },
            "'idn-email' cannot be seen to at #/.defs/x; write a 'pattern'",
        ),
        ({"anyOf": [{}, {"if": {}, "then": {}}]}, "at #/anyOf/1;"),
        ({"properties": {"a": {"pattern": "(?=x)"}}}, "'pattern' looks ahead.* at #/properties/a;"),
        ({"properties": {"a": {"$ref": "http://example.org/x"}}}, "example.org"),
        (
            {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]},
            "at #/properties/a",
        ),
        ({"minimum": 5, "maximum": 3, "type": "integer"}, "greater"),
    ],
    ids=json.dumps,
)
def test_what_cannot_be_enforced_is_refused_with_its_place(schema: Any, fault: str) -> None:
    with pytest.raises(GrammarError, match=fault) as refusal:
        of_schema(schema)
    assert "\n" not in str(refusal.value)
    assert not re.search("Unimplemented|Unknown format|coerce|disjoint", str(refusal.value))


def test_an_approximate_form_says_what_it_does_not_enforce() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    form = of_schema(schema, is_approximate=True)
    assert "uniqueItems" in form.unenforced and form.unenforced.endswith("at the top")
    assert accepts(form, "[1, 1]")
    assert not accepts(form, '["x"]')


def test_a_check_afterwards_is_advised_only_where_it_would_help() -> None:
    for schema, would_help in (
        ({"type": "array", "uniqueItems": True}, True),
        ({"$ref": "https://example.org/person.json"}, False),
    ):
        with pytest.raises(GrammarError) as strict:
            of_schema(schema)
        assert ("approximate" in str(strict.value)) == would_help
        if not would_help:
            with pytest.raises(GrammarError, match="not even approximately"):
                of_schema(schema, is_approximate=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"uniqueItems": False},
        {"propertyNames": {}, "dependentRequired": {}, "unevaluatedProperties": True},
    ],
    ids=json.dumps,
)
def test_what_restricts_nothing_is_no_reason_to_refuse(schema: Any) -> None:
    assert accepts(of_schema(schema), '[1, 1, {"a": 1}]')


def test_ten_thousand_choices_can_be_answered_with() -> None:
    form = compiled(GrammarKind.CHOICE, json.dumps([f"choice {i}" for i in range(10_000)]))
    assert accepts(form, "choice 9999")
    assert not accepts(form, "choice 10000")


def test_a_form_that_can_be_enforced_is_never_approximate() -> None:
    assert not of_schema(PERSON, is_approximate=True).unenforced


@pytest.mark.parametrize(
    ("kind", "source", "text", "is_one"),
    [
        (GrammarKind.REGEX, r"\d{4}-\d{2}", "2026-11", True),
        (GrammarKind.REGEX, r"\d", "٣", False),
        (GrammarKind.REGEX, r"a/b\\c", "a/b\\c", True),
        (GrammarKind.REGEX, "a|b", "ab", False),
        (GrammarKind.CHOICE, '["yes", "yes please"]', "yes please", True),
        (GrammarKind.CHOICE, '["yes", "yes please"]', "yes", True),
        (GrammarKind.CHOICE, '["a\\"\\\\\\n😀</s><|im_end|>"]', 'a"\\\n😀</s><|im_end|>', True),
        (GrammarKind.CHOICE, '["yes"]', "ye", False),
        (GrammarKind.LARK, 'start: "a" /[0-9]+/', "a12", True),
    ],
)
def test_every_language_means_what_it_says(
    kind: GrammarKind, source: str, text: str, is_one: bool
) -> None:
    assert accepts(compiled(kind, source), text) == is_one


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (GrammarKind.REGEX, ""),
        (GrammarKind.REGEX, "(?=a)"),
        (GrammarKind.REGEX, r"(a)\1"),
        (GrammarKind.REGEX, "(a"),
        (GrammarKind.CHOICE, "[]"),
        (GrammarKind.CHOICE, '[""]'),
        (GrammarKind.CHOICE, '["a", "a"]'),
        (GrammarKind.CHOICE, '["a", 1]'),
        (GrammarKind.CHOICE, "{"),
        (GrammarKind.LARK, 'start: ""'),
        (GrammarKind.LARK, "start: x"),
        (GrammarKind.LARK, ""),
        (GrammarKind.GBNF, 'root ::= ""'),
        (GrammarKind.JSON_SCHEMA, "false"),
        (GrammarKind.JSON_SCHEMA, '{"allOf": 5}'),
        (GrammarKind.JSON_SCHEMA, '{"const": {"a": [1234567890123456789]}}'),
        (GrammarKind.JSON_SCHEMA, '{"type": "integer", "minimum": 9007199254740993}'),
        (GrammarKind.JSON_SCHEMA, '{"const": "\\ud800"}'),
        (GrammarKind.JSON_SCHEMA, '{"const": "\ud800"}'),
        (GrammarKind.REGEX, "\ud800"),
        (GrammarKind.LARK, 'start: "\ud800"'),
    ],
)
def test_what_is_empty_or_wrong_is_one_sentence(kind: GrammarKind, source: str) -> None:
    with pytest.raises(GrammarError) as refusal:
        compiled(kind, source)
    assert "\n" not in str(refusal.value)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def any_of(depth: int) -> dict[str, Any]:
    return {"anyOf": [any_of(depth - 1)] * 2} if depth else {"type": "null"}


CHAIN = 'root ::= r0\nr4000 ::= "a"\n' + "\n".join(f"r{n} ::= r{n + 1}" for n in range(4_000))
FAN = (
    "root ::= "
    + " ".join(f"r{n}" for n in reversed(range(4_000)))
    + "".join(f'\nr{n} ::= "a"' for n in range(4_000))
)

HOSTILE: dict[str, tuple[GrammarKind, str]] = {
    name: (GrammarKind.JSON_SCHEMA, json.dumps(schema))
    for name, schema in {
        "deep": nested(2_000 // 10),
        "binary tree": any_of(12),
        "many items": {"type": "array", "minItems": 1_000_000_000},
        "long string": {"type": "string", "maxLength": 1_000_000_000},
        "long pattern": {"type": "string", "pattern": "^[a-z]{1,5000}$"},
        "large enum": {"enum": [str(i) for i in range(20_000)]},
        "many properties": {"properties": {f"p{i}": {"type": "string"} for i in range(5_000)}},
        "itself": {"$ref": "#"},
        "three patterns": {"allOf": [{"pattern": f"{c}.{{50}}y"} for c in "abc"]},
    }.items()
} | {
    "regex, then many": (GrammarKind.REGEX, ".*a.{1000}"),
    "regex, nested counts": (GrammarKind.REGEX, "((a{1,100}){1,100}){1,100}"),
    "regex, a million": (GrammarKind.REGEX, "(abc){1000000}"),
    "brackets with stars": (
        GrammarKind.GBNF,
        "root ::= " + "(" * 50 + '"a"' + (")" + "*" * 50) * 50,
    ),
    "rules in a chain": (GrammarKind.GBNF, CHAIN),
    "rules of one rule": (GrammarKind.GBNF, FAN),
    "long text": (GrammarKind.GBNF, 'root ::= "' + "a" * 250_000 + '"'),
    "brackets in a pattern": (
        GrammarKind.JSON_SCHEMA,
        json.dumps({"type": "string", "pattern": "(" * 400 + "a" + ")" * 400}),
    ),
    "ambiguous": (GrammarKind.LARK, 'start: s\ns: s s | "a" |'),
}


@pytest.fixture
def own_garbage_only() -> Iterator[None]:
    """What thousands of tests before left in memory is not looked through in this one."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_form_is_answered_in_time_and_others_are_not_held_up(
    name: str, own_garbage_only: None
) -> None:
    """vllm-project/vllm#54003: one grammar hung the whole server."""
    compiler = GrammarCompiler(ByteTokenizer())
    await compiler.compile(Grammar(GrammarKind.CHOICE, '["warm"]'))
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before, used = perf_counter(), process_time()
            await asyncio.sleep(0.01)
            # Where this process did nothing meanwhile, it was the machine that was held up.
            longest = max(longest, min(perf_counter() - before, process_time() - used))

    ticking = asyncio.create_task(tick())
    began = perf_counter()
    try:
        await compiler.compile(Grammar(*HOSTILE[name]))
    except GrammarError as refusal:
        assert "\n" not in str(refusal)
    assert perf_counter() - began < COMPILE_SECONDS + 0.5
    ticking.cancel()
    assert longest < 1.0
    compiler.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_form_keeps_its_thread_for_long(name: str) -> None:
    # Whoever asked is told in time in any case; but two such threads are all there are.
    began = thread_time()
    with suppress(GrammarError):
        compiled(*HOSTILE[name])
    assert thread_time() - began < 2.0


@pytest.mark.parametrize("name", ["brackets with stars", "brackets in a pattern"])
def test_a_form_that_is_nested_too_deeply_is_told_so(name: str) -> None:
    with pytest.raises(GrammarError, match="nested too deeply"):
        compiled(*HOSTILE[name])


async def test_a_form_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_module, "COMPILE_SECONDS", 0.05)
    monkeypatch.setattr(compiler_module, "compile_grammar", lambda *_: asyncio.run(_sleep()))
    compiler = GrammarCompiler(ByteTokenizer())
    with pytest.raises(GrammarError, match="too complicated"):
        await compiler.compile(Grammar(GrammarKind.REGEX, "a"))
    compiler.close()


async def _sleep() -> None:
    await asyncio.sleep(0.3)


async def test_a_form_is_compiled_once() -> None:
    compiler = GrammarCompiler(ByteTokenizer())
    grammar = Grammar(GrammarKind.REGEX, "a+")
    assert await compiler.compile(grammar) is await compiler.compile(grammar)
    compiler.close()


async def test_a_compiler_that_was_closed_says_so() -> None:
    compiler = GrammarCompiler(ByteTokenizer())
    compiler.close()
    with pytest.raises(EngineDead, match="being closed"):
        await compiler.compile(Grammar(GrammarKind.REGEX, "a"))


async def test_a_model_without_an_end_cannot_answer_in_a_form_and_is_told_each_time() -> None:
    class Endless(ByteTokenizer):
        def is_end(self, token_id: int) -> bool:
            return False

    compiler = GrammarCompiler(Endless())
    for _ in range(2):
        with pytest.raises(GrammarError, match="choose another model"):
            await compiler.compile(Grammar(GrammarKind.REGEX, "a"))
    compiler.close()


def test_a_fault_of_a_lark_grammar_has_its_line_and_column() -> None:
    with pytest.raises(GrammarError, match=r'unknown name: "b" in line 1, column 8\.'):
        compiled(GrammarKind.LARK, 'start: "a" | b')
    with pytest.raises(GrammarError, match=r"expecting rule.* in line 2, column 5"):
        compiled(GrammarKind.LARK, 'start: "a"\n  | ) b')
