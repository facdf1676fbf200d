"""What an answer may not have, over a whole engine: bans, least lengths, and answers in a form."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from engine.errors import NoTokenLeft
from engine.guided.answer import Guidance
from engine.guided.grammar import GrammarKind
from engine.request import FinishReason
from engine.sampling_params import SamplingParams
from tests.engine.guided.forms import compiled, of_schema
from tests.engine.run import EngineRun
from tests.fakes import END, fake_config

WILD = SamplingParams(
    temperature=3.0, top_k=0, top_p=1.0, min_p=0.0, loop_guard=False, max_tokens=60
)


def run_of() -> EngineRun:
    return EngineRun(fake_config(cells=2048))


@pytest.fixture
def letters() -> Iterator[tuple[tuple[int, float], ...]]:
    """A bias that leaves three letters and the end."""
    yield tuple((each, -100.0) for each in range(258) if each not in (*b"abc", END))


@pytest.mark.parametrize("seed", range(25))
def test_a_banned_phrase_never_appears_and_its_beginnings_do(
    seed: int, letters: tuple[tuple[int, float], ...]
) -> None:
    run = run_of()
    number = run.submit(
        range(20),
        WILD,
        seed=seed,
        logit_bias=letters,
        banned_phrases=("ab", "cca"),
        ignore_eos=True,
    )
    run.finish()
    text = run.texts[number]
    assert len(text) > 20 and set(text) <= set("abc")
    assert "ab" not in text and "cca" not in text


def test_bans_that_leave_nothing_end_one_request_and_no_other() -> None:
    run = run_of()
    nothing = tuple((each, -100.0) for each in range(258))
    number = run.submit(range(20), WILD, logit_bias=nothing)
    other = run.submit(range(30, 50), seed=1)
    run.finish()
    assert isinstance(run.errors[number], NoTokenLeft)
    run.check_answer(other)
    # Nothing was wrong with the memory.
    assert run.memory.num_clears == 0


@pytest.mark.parametrize("seed", range(10))
def test_an_answer_does_not_end_before_its_least_length(
    seed: int, letters: tuple[tuple[int, float], ...]
) -> None:
    run = run_of()
    bias = (*letters, (END, 50.0))
    early = run.submit(range(20), WILD, seed=seed, logit_bias=bias)
    late = run.submit(range(20), WILD, seed=seed, logit_bias=bias, min_tokens=17)
    run.finish()
    assert len(run.tokens[early]) == 0
    assert len(run.tokens[late]) == 17
    assert run.last[late].finish_reason is FinishReason.STOP


def test_a_form_comes_before_a_least_length() -> None:
    run = run_of()
    form = compiled(GrammarKind.CHOICE, '["yes", "no"]')
    number = run.submit(range(20), WILD, guidance=Guidance(form), min_tokens=30)
    run.finish()
    assert run.texts[number] in ("yes", "no")


@pytest.mark.parametrize("seed", range(10))
def test_a_form_is_kept_to_under_every_control(seed: int) -> None:
    generator = np.random.default_rng(seed)
    run = run_of()
    form = of_schema({"type": "array", "items": {"enum": ["aa", "ab"]}, "maxItems": 5})
    number = run.submit(
        range(20),
        WILD,
        guidance=Guidance(form),
        seed=seed,
        max_tokens=200,
        repetition_penalty=2.0,
        frequency_penalty=1.0,
        no_repeat_ngram_size=2,
        dry_multiplier=5.0,
        dry_allowed_length=1,
        xtc_probability=1.0,
        mirostat=int(generator.integers(3)),
    )
    run.finish()
    assert run.last[number].finish_reason is FinishReason.STOP
    assert set(json.loads(run.texts[number])) <= {"aa", "ab"}


def test_a_form_that_needs_what_is_banned_ends_incomplete_and_says_so() -> None:
    run = run_of()
    form = compiled(GrammarKind.CHOICE, '["yes", "yonder"]')
    ways = {
        "phrase": {"banned_phrases": ("yes", "yonder")},
        "token": {"logit_bias": ((ord("y"), -100.0),)},
    }
    for changes in ways.values():
        number = run.submit(range(20), WILD, guidance=Guidance(form), **changes)
        run.finish()
        assert run.last[number].finish_reason is FinishReason.GRAMMAR_INCOMPLETE
        assert "banned" in run.last[number].notice or "bans" in run.last[number].notice
        assert "yes" not in run.texts[number]
    assert run.memory.num_clears == 0


def test_the_way_to_the_end_of_a_form_does_not_go_through_what_is_banned() -> None:
    run = run_of()
    form = of_schema({"type": "array", "items": {"type": "string"}})
    for seed in range(10):
        number = run.submit(
            range(20),
            WILD,
            guidance=Guidance(form),
            seed=seed,
            max_tokens=30,
            banned_phrases=('"]',),
        )
        run.finish()
        assert '"]' not in run.texts[number]
