"""An answer that begins with given tokens goes on as if the model had written them itself."""

import json
from collections.abc import Sequence

import numpy as np
import pytest

from engine.guided.answer import Guidance
from engine.guided.grammar import GrammarKind
from engine.request import FinishReason, RequestOptions
from tests.engine.guided.forms import compiled
from tests.engine.run import EngineRun
from tests.fakes import fake_config, logits_after

PROMPT = list(range(100, 160))


def answered(run: EngineRun, beginning: Sequence[int] = (), **changes: object) -> list[int]:
    number = run.submit(PROMPT, beginning=beginning, max_tokens=20, **changes)
    run.finish()
    return run.tokens[number]


@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 19])
def test_it_goes_on_as_the_answer_that_had_it(length: int) -> None:
    run = EngineRun()
    alone = answered(run)
    assert answered(run, alone[:length]) == alone
    fresh = EngineRun()
    assert answered(fresh, alone[:length]) == alone
    assert fresh.texts == {next(iter(fresh.texts)): run.texts[next(iter(run.texts))]}


def test_another_token_leads_elsewhere_and_what_was_read_before_it_is_not_read_again() -> None:
    run = EngineRun()
    alone = answered(run)
    other = (alone[5] + 1) % 200
    number = run.submit(PROMPT, beginning=[*alone[:5], other], max_tokens=20)
    run.finish()
    assert run.tokens[number][:6] == [*alone[:5], other]
    timings = run.timings(number)
    assert (timings.begun_tokens, timings.completion_tokens) == (6, 14)
    assert timings.cached_tokens >= len(PROMPT) - 1 and timings.prompt_tokens == len(PROMPT)


def test_penalties_count_it_as_a_part_of_the_answer() -> None:
    run = EngineRun()
    alone = answered(run, presence_penalty=2.0)
    assert answered(run, alone[:7], presence_penalty=2.0) == alone


def test_it_is_the_same_in_reproducible_mode() -> None:
    options = RequestOptions(is_reproducible=True)
    alone = answered(EngineRun(), options=options)
    assert answered(EngineRun(), alone[:7], options=options) == alone


def test_likelihoods_are_told_of_what_was_drawn() -> None:
    run = EngineRun()
    alone = answered(run)
    options = RequestOptions(num_logprobs=1)
    number = run.submit(PROMPT, options=options, beginning=alone[:7], max_tokens=20)
    run.finish()
    assert [each.chosen.token_id for each in run.choices[number]] == alone[7:]


def test_a_form_goes_on_from_it() -> None:
    run = EngineRun(fake_config(cells=2048))
    form = compiled(GrammarKind.CHOICE, json.dumps(["abcd", "xyz", "xyw"]))
    number = run.submit(PROMPT, guidance=Guidance(form), beginning=list(b"x"), max_tokens=20)
    run.finish()
    assert run.texts[number] in ("xyz", "xyw")
    assert run.last[number].finish_reason is FinishReason.STOP


def test_a_beginning_that_the_form_does_not_allow_ends_the_answer_and_says_so() -> None:
    run = EngineRun(fake_config(cells=2048))
    form = compiled(GrammarKind.CHOICE, json.dumps(["abcd"]))
    number = run.submit(PROMPT, guidance=Guidance(form), beginning=list(b"ax"), max_tokens=20)
    run.finish()
    assert run.last[number].finish_reason is FinishReason.GRAMMAR_INCOMPLETE
    assert run.last[number].notice and run.texts[number] == "a"


def test_a_request_for_logits_ends_with_them_and_leaves_nothing() -> None:
    run = EngineRun()
    options = RequestOptions(is_background=True, shows_logits=True)
    number = run.submit(PROMPT, options=options)
    run.finish()
    logits = run.last[number].logits
    assert logits is not None and run.tokens[number] == []
    np.testing.assert_array_equal(logits, logits_after(PROMPT)[: len(logits)])
    assert logits.base is None or logits.flags.owndata
    other = run.submit(PROMPT)
    run.finish()
    assert run.cached_tokens(other) == 0 and run.last[other].logits is None


def test_logits_that_are_no_numbers_are_a_sentence() -> None:
    run = EngineRun()
    run.runner.execute = lambda batch: np.full((batch.num_rows, 300), np.nan, np.float32)  # type: ignore[method-assign]
    number = run.submit(PROMPT[:8], options=RequestOptions(is_background=True, shows_logits=True))
    run.step()
    assert "no usable number" in str(run.errors[number])
