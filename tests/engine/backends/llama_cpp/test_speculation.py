"""Guesses and forms on a real model: read together, and the same answer but for near-ties."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.config import EngineConfig
from engine.guided.answer import Guidance
from engine.guided.compiler import compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.vocabulary import GuidedVocabulary
from engine.request import Request, RequestOptions
from engine.sampling.sampler import Sampler
from tests.engine.backends.llama_cpp.model_run import ModelRun, assert_same_up_to_near_ties
from tests.fakes import EvenCosts

STORY = (
    "The lighthouse stood on the northern cliff, where the wind never rested. Its keeper, a quiet"
    " man named Tomas Berg, climbed the two hundred and eleven steps every evening to light the"
    " lamp. In winter the sea threw stones against the windows."
)
ASKED = [
    f"Repeat this text word for word: {STORY}",
    f"{STORY} What is the name of the keeper?",
    "Count from one to thirty in words, each on a line of its own.",
    "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n",
]


@pytest.fixture
def guessing(backend: LlamaBackend, config: EngineConfig) -> ModelRun:
    backend.kv_memory.accept_steps()
    backend.kv_memory.clear()
    return ModelRun(backend, config, EvenCosts())


def prompt(run: ModelRun, asked: str) -> list[int]:
    return run.encode(f"user\n{asked}\nassistant\n")


def test_guesses_that_came_true_change_no_answer(guessing: ModelRun, config: EngineConfig) -> None:
    prompts = [prompt(guessing, asked) for asked in ASKED]
    numbers = [guessing.submit(token_ids, max_tokens=40) for token_ids in prompts]
    guessing.finish()
    assert sum(guessing.timings(number).accepted_tokens for number in numbers) > 20
    backend = guessing.backend
    backend.kv_memory.clear()
    plain = ModelRun(backend, config)
    for token_ids, number in zip(prompts, numbers, strict=True):
        alone = plain.answer(token_ids, max_tokens=40)
        assert_same_up_to_near_ties(backend._model, token_ids, alone, guessing.tokens[number])


def test_every_token_is_the_best_of_the_step_that_verified_it(
    guessing: ModelRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of which a token was taken is the one that was computed after the tokens before it."""
    best: list[int] = []
    sample = Sampler.sample_row

    def watched(self: Sampler, row: NDArray[np.float32], request: Request) -> int:
        best.append(int(row.argmax()))
        return sample(self, row, request)

    monkeypatch.setattr(Sampler, "sample_row", watched)
    for asked in ASKED:
        best.clear()
        number = guessing.submit(prompt(guessing, asked), max_tokens=40)
        guessing.finish()
        assert guessing.tokens[number] == best


def test_a_reproducible_answer_is_neither_guessed_nor_read_together(guessing: ModelRun) -> None:
    options = RequestOptions(is_reproducible=True)
    form = compile_grammar(
        Grammar(GrammarKind.REGEX, "The keeper of the lighthouse is called [A-Z][a-z]{1,9}[.]"),
        GuidedVocabulary(guessing.backend.tokenizer),
    )
    token_ids = prompt(guessing, ASKED[1])
    answers = []
    for _ in range(2):
        number = guessing.submit(token_ids, options, Guidance(form), max_tokens=40)
        guessing.finish()
        timings = guessing.timings(number)
        assert timings.forced_tokens == timings.drafted_tokens == 0
        answers.append(guessing.tokens[number])
    assert answers[0] == answers[1]


def test_a_form_is_guessed_and_read_together_and_kept_to(guessing: ModelRun) -> None:
    form = compile_grammar(
        Grammar(
            GrammarKind.REGEX,
            "Its keeper, a quiet man named [A-Z][a-z]+ [A-Z][a-z]+, climbed [a-z ]{5,60}[.]",
        ),
        GuidedVocabulary(guessing.backend.tokenizer),
    )
    token_ids = prompt(guessing, ASKED[0])
    number = guessing.submit(token_ids, guidance=Guidance(form), max_tokens=40)
    guessing.finish()
    text = _text(guessing, guessing.tokens[number])
    assert text.startswith("Its keeper, a quiet man named ")
    assert text.endswith(".")
    timings = guessing.timings(number)
    assert timings.forced_tokens >= 8
    assert timings.accepted_tokens > 0


def _text(run: ModelRun, token_ids: Sequence[int]) -> str:
    return b"".join(run.backend.tokenizer.token_bytes(each) for each in token_ids).decode()
