"""When an answer goes round in circles, and when its form wants it to."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.generation import Generation
from engine.guided.answer import Guidance
from engine.guided.grammar import GrammarKind
from engine.loop_guard import LOOP_NOTICE
from engine.request import FinishReason, Request, RequestOutput
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from tests.engine.guided.forms import BYTES, accepts, compiled
from tests.fakes import ByteTokenizer

GREEDY = SamplingParams(temperature=0.0, max_tokens=2000)


def written(likes: bytes, pattern: str = "", opened_tag: str = "") -> tuple[str, RequestOutput]:
    """The answer of a model that only ever wants to say this, over and over."""
    form = compiled(GrammarKind.REGEX, pattern) if pattern else None
    request = Request([1, 2, 3], GREEDY, guidance=form and Guidance(form, opened_tag))
    generation = Generation(request, ByteTokenizer(), 4000)
    sampler = Sampler(ByteTokenizer())
    text = ""
    for output in steps(generation, sampler, likes):
        text += output.text
    return text, output


def steps(generation: Generation, sampler: Sampler, likes: bytes) -> Iterator[RequestOutput]:
    ending = generation.ending
    while ending is None:
        row = np.zeros(BYTES.num_tokens, np.float32)
        row[likes[generation.request.num_output_tokens % len(likes)]] = 1
        ending = generation.take(generation.pick(row, sampler))
        if ending is None:
            yield generation.output()
    yield generation.finish(ending)


def test_a_loop_is_ended_and_said() -> None:
    text, last = written(b"ab")
    assert set(text) == {"a", "b"} and len(text) < 500
    assert (last.finish_reason, last.notice) == (FinishReason.LENGTH, LOOP_NOTICE)


@pytest.mark.parametrize("pattern", ["a{700}", "a{390}b{400}", "(ab){450}", "a{390}"])
def test_a_repetition_that_the_form_demands_is_no_loop(pattern: str) -> None:
    text, last = written(b"a", pattern)
    assert accepts(compiled(GrammarKind.REGEX, pattern), text)
    assert (last.finish_reason, last.notice) == (FinishReason.STOP, "")


@pytest.mark.parametrize(
    ("likes", "pattern"),
    [
        (b"aaa,", "[ab]{600}"),
        (b"aaa,", "([a-z]{3},)*end"),
        (b"aaa,", "<[a-z ]{1,1500}>"),
        # Here and there a letter is demanded, and those are the ones at which it is looked.
        (b"ah", "(ah){1,900}!"),
        (b"ha", "x(ah){1,900}!"),
        (b"hahaha, ", "(hahaha, ){1,900}!"),
    ],
)
def test_a_loop_in_a_form_is_brought_to_the_end_of_the_form(likes: bytes, pattern: str) -> None:
    text, last = written(likes, pattern)
    assert len(text) <= 700
    assert accepts(compiled(GrammarKind.REGEX, pattern), text)
    assert (last.finish_reason, last.notice) == (FinishReason.LENGTH, LOOP_NOTICE)
    assert last.timings is not None and last.timings.finish == "loop"


def test_a_loop_in_a_form_that_has_no_end_in_reach_is_said_to_be_incomplete() -> None:
    _, last = written(b"a", "[ab]{1800}[xy]{1800}")
    assert last.finish_reason is FinishReason.GRAMMAR_INCOMPLETE
    assert LOOP_NOTICE in last.notice and "incomplete" in last.notice


def test_thinking_that_goes_round_in_circles_is_ended_and_the_answer_given() -> None:
    text, last = written(b"hm ", "[0-9]{3}", "<think>")
    thought, _, answer = text.partition("</think>")
    assert len(thought) < 500
    assert answer.strip().isdigit()
    assert (last.finish_reason, last.notice) == (FinishReason.STOP, "")


def test_text_that_may_not_have_everything_in_it_ends_as_text_does() -> None:
    """Its stop texts count, and wherever it is cut it is no incomplete form."""
    form = compiled(GrammarKind.REGEX, r"([^\[\]]|\[[12]\])*")

    def text_of(likes: bytes, **changes: Any) -> tuple[str, RequestOutput]:
        params = replace(GREEDY, **changes)
        request = Request([1, 2, 3], params, guidance=Guidance(form, is_text=True))
        generation = Generation(request, ByteTokenizer(), 4000)
        outputs = list(steps(generation, Sampler(ByteTokenizer()), likes))
        return "".join(each.text for each in outputs), outputs[-1]

    text, last = text_of(b"abc STOP", stop=("STOP",))
    assert (text, last.finish_reason, last.notice) == ("abc ", FinishReason.STOP, "")
    for most in range(1, 8):
        text, last = text_of(b"abcde[1", max_tokens=most, loop_guard=False)
        assert text == "abcde[1"[:most]
        assert (last.finish_reason, last.notice) == (FinishReason.LENGTH, "")
    text, last = text_of(b"ab")
    assert (last.finish_reason, last.notice) == (FinishReason.LENGTH, LOOP_NOTICE)


def test_text_with_marks_has_no_other_brackets_and_comes_after_the_thinking() -> None:
    form = compiled(GrammarKind.REGEX, r"([^\[\]]|\[[12]\])*")
    request = Request(
        [1, 2, 3],
        replace(GREEDY, max_tokens=60, loop_guard=False),
        guidance=Guidance(form, "<think>", is_text=True),
    )
    generation = Generation(request, ByteTokenizer(), 4000)
    text = "".join(
        each.text for each in steps(generation, Sampler(ByteTokenizer()), b"[7] so</think>[7]")
    )
    thought, _, answer = text.partition("</think>")
    assert "[7]" in thought
    assert "[7]" not in answer and accepts(form, answer) or answer.count("[") > answer.count("]")
