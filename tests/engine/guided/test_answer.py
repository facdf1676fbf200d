"""Whole answers in a form, by an engine over random logits: valid, or said to be incomplete."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.generation import SHORTENED_NOTICE
from engine.guided import matcher
from engine.guided.answer import Guidance
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.vocabulary import GuidedVocabulary
from engine.request import FinishReason, RequestOptions
from engine.sampling_params import SamplingParams
from tests.engine.guided.forms import accepts, compiled, of_schema
from tests.engine.run import EngineRun
from tests.fakes import END, ByteTokenizer, fake_config

WILD = SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0, loop_guard=False)
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{3,12}$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 4},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


DELIMITED: dict[str, tuple[GrammarKind, str]] = {
    "statement": (GrammarKind.GBNF, 'root ::= [^;]+ ";"'),
    "program": (
        GrammarKind.GBNF,
        'root ::= (line "\\n")+ "END"\nline ::= [a-z]+ " = " [^;\\n]+ ";"',
    ),
    "object": (
        GrammarKind.GBNF,
        r"""
        root ::= object
        value ::= object | text | [0-9]+
        object ::= "{" (text ":" value ("," text ":" value)*)? "}"
        text ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\bfnrt] | "u" [0-9a-f]{4}))* "\""
        """,
    ),
    "lists": (
        GrammarKind.GBNF,
        'root ::= "(" atom (" " (atom | root))* ")"\natom ::= "<" [^>]* ">"',
    ),
    "comment": (GrammarKind.LARK, 'start: "/*" TEXT "*/"\nTEXT: /[^*]+/'),
    "note": (GrammarKind.LARK, 'start: "<p>" line+ "</p>"\nline: "<b>" TEXT "</b>"\nTEXT: /[^<]+/'),
    "table": (
        GrammarKind.LARK,
        'start: row ("\\n" row)*\nrow: "|" CELL "|" CELL "|"\nCELL: /[^|]+/',
    ),
    "equations": (
        GrammarKind.GBNF,
        r"""
        root ::= (sum "=" ws term "\n")+
        sum ::= term ([-+*/] term)*
        term ::= [a-z] [a-z0-9_]* ws | [0-9]+ ws | "(" ws sum ")" ws
        ws ::= [ \t\n]*
        """,
    ),
    "calls": (
        GrammarKind.GBNF,
        r"""
        root ::= ("int " name "(" ")" "{" line* "}")+
        line ::= "return " name ";" | "while(" name "<" name "){" line* "}"
        name ::= [a-z]+
        """,
    ),
    "another script": (GrammarKind.GBNF, 'root ::= ("[" [ぁ-ゟ]+ "]")+ "。" root?'),
    "pattern": (GrammarKind.REGEX, "[^;]+;[^.]+[.]"),
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for here is a way, however busy the machine is."""
    monkeypatch.setattr(matcher, "CLOSING_SECONDS", 20.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", DELIMITED)
def test_what_goes_on_until_a_delimiter_is_closed_in_time(name: str, seed: int) -> None:
    form = compiled(*DELIMITED[name])
    text, reason, _ = answered(form, seed=seed, max_tokens=90)
    assert reason in (FinishReason.STOP, FinishReason.LENGTH)
    assert accepts(form, text) or "\ufffd" in text


@pytest.mark.parametrize("seed", range(6))
def test_what_was_looked_for_in_vain_from_afar_is_looked_for_again_near_the_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = matcher.Matcher.closing

    def short_sighted(self: matcher.Matcher, num_tokens: int) -> list[int] | None:
        return None if num_tokens > 64 else closing(self, num_tokens)

    monkeypatch.setattr(matcher.Matcher, "closing", short_sighted)
    form = compiled(GrammarKind.REGEX, "<[^>]*>")
    text, reason, _ = answered(form, seed=seed, max_tokens=150)
    assert reason is FinishReason.STOP
    assert accepts(form, text) or "\ufffd" in text


def answered(form: CompiledGrammar, **changes: Any) -> tuple[str, FinishReason, str]:
    run = EngineRun(fake_config(cells=2048))
    number = run.submit(range(20), WILD, guidance=Guidance(form), **changes)
    run.finish()
    last = run.last[number]
    assert last.finish_reason is not None and last.timings is not None
    return run.texts[number], last.finish_reason, last.notice


@pytest.mark.parametrize("seed", range(20))
def test_a_finished_answer_satisfies_its_schema(seed: int) -> None:
    text, reason, notice = answered(of_schema(PERSON), seed=seed, max_tokens=1000)
    assert (reason, notice) == (FinishReason.STOP, "")
    assert list(json.loads(text)) == ["name", "age", "tags"]


@pytest.mark.parametrize("max_tokens", [*range(1, 60, 3), 100, 200])
def test_an_answer_is_closed_before_its_last_token_or_said_to_be_incomplete(
    max_tokens: int,
) -> None:
    """ollama/ollama#4446: objects that were cut off in their middle."""
    form = of_schema({**PERSON, "properties": {**PERSON["properties"], "age": {}}})
    shortest = form.matcher().closing(1000, 20.0)
    assert shortest is not None
    text, reason, notice = answered(form, seed=max_tokens, max_tokens=max_tokens)
    if max_tokens >= len(shortest):
        assert reason is FinishReason.STOP
        json.loads(text)
    else:
        assert reason is FinishReason.GRAMMAR_INCOMPLETE
        assert "incomplete" in notice
    assert len(text.encode()) <= max_tokens


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_that_was_hurried_to_its_end_says_so(seed: int) -> None:
    hurried = compiled(GrammarKind.REGEX, "a[b-y]{28,400}z")
    text, reason, notice = answered(hurried, seed=seed, max_tokens=30)
    assert (len(text), reason, notice) == (30, FinishReason.STOP, SHORTENED_NOTICE)
    _, reason, notice = answered(compiled(GrammarKind.REGEX, "ab{2}c"), seed=seed, max_tokens=30)
    assert (reason, notice) == (FinishReason.STOP, "")


def test_an_answer_is_closed_before_the_context_is_full() -> None:
    run = EngineRun(fake_config(cells=256), max_request_tokens=80)
    form = of_schema({"type": "array", "items": {"type": "string"}})
    number = run.submit(range(20), WILD, guidance=Guidance(form), seed=3, max_tokens=1000)
    run.finish()
    assert run.last[number].finish_reason is FinishReason.STOP
    json.loads(run.texts[number])


@pytest.mark.parametrize("max_tokens", range(1, 30))
def test_an_answer_that_may_end_ends_before_it_begins_what_it_cannot_close(
    max_tokens: int,
) -> None:
    form = compiled(GrammarKind.REGEX, "[a-z]+(,[a-z]+)*")
    text, reason, _ = answered(form, seed=max_tokens, max_tokens=max_tokens)
    assert accepts(form, text)
    assert reason in (FinishReason.STOP, FinishReason.LENGTH)


def test_the_end_comes_without_being_asked_for() -> None:
    run = EngineRun()
    form = compiled(GrammarKind.CHOICE, '["yes", "no"]')
    number = run.submit(range(20), WILD, guidance=Guidance(form), seed=1)
    run.finish()
    assert run.texts[number] in ("yes", "no")
    assert run.timings(number).completion_tokens == len(run.texts[number])
    assert run.timings(number).finish == "form"


def test_a_stop_text_does_not_cut_a_form() -> None:
    """vllm-project/vllm#14170: a stop text inside a string ended the object."""
    form = of_schema({"const": "a stop b"})
    text, reason, notice = answered(form, stop=("stop",), max_tokens=100)
    assert (text, reason) == ('"a stop b"', FinishReason.STOP)
    assert "stop texts" in notice


def test_that_stop_texts_were_left_out_is_said_beside_what_else_is_to_be_said() -> None:
    _, _, notice = answered(of_schema({"const": "a stop b"}), stop=("stop",), max_tokens=3)
    assert "incomplete" in notice and "stop texts" in notice


def test_penalties_and_filters_do_not_empty_what_is_allowed() -> None:
    form = compiled(GrammarKind.REGEX, "a{40}")
    text, reason, _ = answered(
        form, repetition_penalty=10.0, presence_penalty=2.0, min_p=1.0, max_tokens=60
    )
    assert (text, reason) == ("a" * 40, FinishReason.STOP)


def test_a_form_goes_on_after_a_preemption() -> None:
    run = EngineRun(fake_config(cells=256, running=4, batch=64))
    form = compiled(GrammarKind.REGEX, "([a-z][0-9]){20}")
    numbers = [
        run.submit(range(n, n + 55), WILD, guidance=Guidance(form), seed=n, max_tokens=40)
        for n in range(4)
    ]
    run.finish()
    assert any(run.requests[number].num_preemptions for number in numbers)
    for number in numbers:
        assert accepts(form, run.texts[number])


class ThinkingTokenizer(ByteTokenizer):
    """`<think>` is a token of its own; its closing tag is letters."""

    control_tokens = {
        **ByteTokenizer.control_tokens,
        "<think>": replace(ByteTokenizer.control_tokens["<turn>"], text="<think>"),
    }


def thinking(source: str, max_tokens: int, opened_tag: str = "", seed: int = 0) -> str:
    run = EngineRun(fake_config(cells=1024))
    tokenizer = ThinkingTokenizer()
    run.engine._tokenizer = tokenizer
    vocabulary = GuidedVocabulary(tokenizer)
    form = compile_grammar(Grammar(GrammarKind.REGEX, source), vocabulary)
    number = run.submit(
        range(20), WILD, guidance=Guidance(form, opened_tag), seed=seed, max_tokens=max_tokens
    )
    run.finish()
    assert run.last[number].finish_reason is FinishReason.STOP
    return bytes(each for each in run.tokens[number] if each < END).decode("latin-1")


@pytest.mark.parametrize("seed", range(10))
def test_the_last_tokens_are_not_spent_on_white_space(seed: int) -> None:
    """Of 24 tokens the thinking takes half and its tag eight; the form needs what is left."""
    text = thinking("[a-z]{4}", 24, "<think>", seed)
    _, _, answer = text.partition("</think>")
    assert accepts(compiled(GrammarKind.REGEX, "[a-z]{4}"), answer)


@pytest.mark.parametrize("seed", range(10))
def test_a_form_may_begin_with_white_space_of_its_own(seed: int) -> None:
    text = thinking(" {3}[a-z]{3}", 40, "<think>", seed)
    _, _, answer = text.partition("</think>")
    assert answer.startswith("   ") and len(answer) == 6


@pytest.mark.parametrize("seed", range(5))
def test_thinking_comes_first_and_is_ended_in_time(seed: int) -> None:
    """vllm-project/vllm#18255: the form was forced upon the thinking, or never came."""
    text = thinking("[a-z]{3}=[0-9]{2}", 160, "<think>", seed)
    thought, _, answer = text.partition("</think>")
    assert 70 <= len(thought) <= 80
    assert accepts(compiled(GrammarKind.REGEX, r"[ \t\n\r\x0b\x0c]{0,2}[a-z]{3}=[0-9]{2}"), answer)


def test_a_model_may_begin_to_think_or_not() -> None:
    texts = [thinking("[0-9]{2}", 60, seed=seed) for seed in range(60)]
    assert any("</think>" in text for text in texts)
    assert any(len(text) == 2 for text in texts)


FIXED = compiled(GrammarKind.REGEX, r'\{"kind":"invoice","paid":(true|false)\}')


def test_what_a_form_leaves_no_choice_about_is_read_together() -> None:
    run = EngineRun(fake_config(cells=2048))
    number = run.submit(range(20), WILD, guidance=Guidance(FIXED), seed=1)
    run.finish()
    assert json.loads(run.texts[number])["kind"] == "invoice"
    timings = run.timings(number)
    # One letter is chosen: t or f.
    assert timings.forced_tokens == timings.completion_tokens - 1
    assert timings.prefilled_tokens == 20
    computed = [count for batch in run.runner.batches for _, count, _ in batch]
    assert len(computed) < 6


def test_a_reproducible_answer_is_written_token_by_token() -> None:
    run = EngineRun(fake_config(cells=2048))
    options = RequestOptions(is_reproducible=True)
    guidance = Guidance(FIXED)
    number = run.submit(range(20), WILD, options=options, guidance=guidance, seed=1)
    run.finish()
    timings = run.timings(number)
    assert json.loads(run.texts[number])["kind"] == "invoice"
    assert timings.forced_tokens == 0
    assert len(run.runner.batches) == timings.completion_tokens


def test_a_form_without_any_choice_is_answered_in_one_step() -> None:
    run = EngineRun(fake_config(cells=2048))
    only = compiled(GrammarKind.CHOICE, '["nothing else"]')
    number = run.submit(range(20), WILD, guidance=Guidance(only))
    run.finish()
    assert run.texts[number] == "nothing else"
    assert run.last[number].finish_reason is FinishReason.STOP
    assert len(run.runner.batches) == 1


def test_a_long_text_that_must_come_delays_nobody_more_than_a_prompt_does() -> None:
    run = EngineRun(fake_config(cells=2048, batch=32))
    other = run.submit(range(10), max_tokens=200)
    run.step()
    long = compiled(GrammarKind.REGEX, "[ab]" + "c" * 300)
    number = run.submit(range(20), WILD, guidance=Guidance(long), max_tokens=400)
    run.finish()
    assert run.texts[number][1:] == "c" * 300
    run.check_answer(other)
    assert all(sum(count for _, count, _ in batch) <= 32 for batch in run.runner.batches)


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_in_a_form_survives_preemptions(seed: int) -> None:
    run = EngineRun(fake_config(cells=256))
    forms = [of_schema(PERSON), FIXED]
    numbers = [
        run.submit(range(i, i + 40), WILD, guidance=Guidance(forms[i % 2]), seed=seed + i)
        for i in range(6)
    ]
    run.finish(5000)
    for number in numbers:
        assert run.last[number].finish_reason is FinishReason.STOP
        json.loads(run.texts[number])
