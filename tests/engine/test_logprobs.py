"""What is said about how likely a token was, against a plain computation."""

import json

import numpy as np
import pytest

from engine.guided.answer import Guidance
from engine.guided.grammar import GrammarKind
from engine.logprobs import choice_of
from engine.request import RequestOptions
from tests.engine.guided.forms import compiled
from tests.engine.run import EngineRun
from tests.fakes import fake_config, logits_after


def log_softmax(row: np.ndarray) -> np.ndarray:
    exact = row.astype(np.float64)
    return exact - exact.max() - np.log(np.exp(exact - exact.max()).sum())


@pytest.mark.parametrize("num", [0, 1, 5, 300, 1000])
def test_the_alternatives_are_the_likeliest_tokens(num: int) -> None:
    row = np.random.default_rng(num).normal(0, 3, 300).astype(np.float32)
    exact = log_softmax(row)
    choice = choice_of(row, 17, num)
    assert choice.chosen.logprob == pytest.approx(exact[17], abs=1e-5)
    ids = [each.token_id for each in choice.alternatives]
    assert ids == np.argsort(-row, kind="stable")[:num].tolist()
    assert [each.logprob for each in choice.alternatives] == pytest.approx(exact[ids], abs=1e-5)


def test_equal_logits_are_told_in_the_order_of_their_ids() -> None:
    choice = choice_of(np.zeros(8, np.float32), 3, 4)
    assert [each.token_id for each in choice.alternatives] == [0, 1, 2, 3]
    assert choice.chosen.logprob == pytest.approx(-np.log(8))


def test_what_is_impossible_is_no_alternative() -> None:
    row = np.array([1, -np.inf, 2, -np.inf], np.float32)
    assert [each.token_id for each in choice_of(row, 2, 4).alternatives] == [2, 0]
    allowed = np.array([1, -np.inf, -np.inf, -np.inf], np.float32)
    choice = choice_of(row, 0, 4, allowed)
    assert [each.token_id for each in choice.alternatives] == [0]
    assert choice.alternatives[0].logprob == pytest.approx(log_softmax(row[[0, 2]])[0])


def test_every_token_of_an_answer_comes_with_its_choice() -> None:
    run = EngineRun()
    options = RequestOptions(num_logprobs=2)
    number = run.submit(range(30), options=options, max_tokens=20, temperature=1.0, seed=1)
    run.finish()
    run.check_answer(number)
    choices = run.choices[number]
    assert [choice.chosen.token_id for choice in choices] == run.tokens[number]
    said = list(range(30))
    for choice in choices:
        exact = log_softmax(logits_after(said))
        assert choice.chosen.logprob == pytest.approx(exact[choice.chosen.token_id], abs=1e-5)
        assert [each.token_id for each in choice.alternatives] == np.argsort(-exact)[:2].tolist()
        said.append(choice.chosen.token_id)


def test_nothing_is_told_where_nothing_was_asked() -> None:
    run = EngineRun()
    number = run.submit(range(30))
    run.finish()
    assert run.choices[number] == []


def test_in_a_form_the_alternatives_are_what_it_allows_and_every_token_is_looked_at() -> None:
    run = EngineRun(fake_config(cells=2048))
    form = compiled(GrammarKind.CHOICE, json.dumps(["abcd", "abce", "abf"]))
    options = RequestOptions(num_logprobs=5)
    number = run.submit(range(30), options=options, guidance=Guidance(form), max_tokens=20)
    run.finish()
    assert run.texts[number] in ("abcd", "abce", "abf")
    choices = run.choices[number]
    assert len(choices) == len(run.tokens[number])
    assert [len(choice.alternatives) for choice in choices][:3] == [1, 1, 2]
    assert run.timings(number).forced_tokens == 0
