"""The llama.cpp backend: it says what llama-cpp-python says, whatever happens around a request."""

import asyncio
import random
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.library import bindings
from engine.config import EngineConfig
from engine.engine import RequestFailure
from engine.loading import load
from engine.request import FinishReason
from tests.engine.backends.llama_cpp.model_run import (
    GREEDY,
    ModelRun,
    assert_same_up_to_near_ties,
)

pytestmark = pytest.mark.model

TEXTS = (
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "Once upon a time, in a small village by the sea, there lived",
    "def fibonacci(n):\n    ",
    "The three primary colours are",
)
STORY = " ".join(f"Then the {i}th traveller told a tale of snow and long roads." for i in range(30))


def same(run: ModelRun, prompt: list[int], one: list[int], other: list[int]) -> None:
    assert_same_up_to_near_ties(run.backend._model, prompt, one, other)


def test_a_greedy_answer_is_the_same_twice(run: ModelRun, config: EngineConfig) -> None:
    prompt = run.encode(TEXTS[0])
    first = run.answer(prompt, max_tokens=32)
    run.backend.kv_memory.clear()
    assert ModelRun(run.backend, config).answer(prompt, max_tokens=32) == first


@pytest.mark.parametrize(("flash_attn", "n_batch"), [(True, 512), (False, 7)])
def test_greedy_answers_are_those_of_llama_cpp_python(
    run: ModelRun, starter: Path, flash_attn: bool, n_batch: int
) -> None:
    from llama_cpp import Llama

    llama = Llama(
        str(starter),
        n_ctx=1024,
        n_batch=n_batch,
        n_threads=1,
        flash_attn=flash_attn,
        verbose=False,
    )
    for text in TEXTS:
        prompt = run.encode(text)
        stream = llama.generate(prompt, temp=0.0, repeat_penalty=1.0, reset=True)
        theirs = [next(stream) for _ in range(16)]
        ours = run.answer(prompt, max_tokens=16)
        same(run, prompt, ours, theirs)
    llama.close()


def test_four_at_once_answer_as_each_alone(run: ModelRun, config: EngineConfig) -> None:
    prompts = [run.encode(text) for text in TEXTS]
    alone = [run.answer(prompt) for prompt in prompts]
    run.backend.kv_memory.clear()
    together = ModelRun(run.backend, config)
    numbers = [together.submit(prompt) for prompt in prompts]
    together.finish()
    for prompt, number, answer in zip(prompts, numbers, alone, strict=True):
        same(run, prompt, answer, together.tokens[number])


def test_a_continued_and_a_forked_chat_answer_as_from_nothing(
    run: ModelRun, config: EngineConfig
) -> None:
    other = ModelRun(LlamaBackend(config), config)
    start = run.encode(STORY)[:200]
    answer = run.answer(start)
    more = [*start, *answer, *run.encode(" And then")]
    branch = [*start, *run.encode(" But nobody")]
    assert more[len(start)] != branch[len(start)]
    for prompt, cached in ((more, len(start) + len(answer) - 1), (branch, len(start))):
        number = run.submit(prompt)
        run.finish()
        assert run.cached_tokens(number) == cached
        same(run, prompt, other.answer(prompt), run.tokens[number])
        other.backend.kv_memory.clear()
        other = ModelRun(other.backend, config)
    other.backend.close()


def test_the_prompt_is_read_in_pieces_and_the_answer_is_that_of_one_piece(
    run: ModelRun, starter: Path
) -> None:
    prompt = run.encode(STORY)[:150]
    config = EngineConfig(model_path=starter, context_tokens=512, max_batch_tokens=32)
    pieces = LlamaBackend(config)
    in_pieces = ModelRun(pieces, config).answer(prompt)
    pieces.close()
    same(run, prompt, run.answer(prompt), in_pieces)


def test_a_full_context_ends_the_answer(starter: Path) -> None:
    config = EngineConfig(model_path=starter, context_tokens=256, max_sequences=2, max_running=2)
    backend = LlamaBackend(config)
    run = ModelRun(backend, config)
    number = run.submit(run.encode(STORY)[:250], max_tokens=100)
    run.finish()
    last = run.last[number]
    assert not isinstance(last, RequestFailure)
    assert last.finish_reason is FinishReason.LENGTH
    assert "256 tokens is full" in last.notice
    assert len(run.tokens[number]) == 6
    backend.close()


def test_in_too_few_cells_everybody_is_answered_as_alone(starter: Path, run: ModelRun) -> None:
    config = EngineConfig(
        model_path=starter, context_tokens=256, max_sequences=6, max_running=4, max_batch_tokens=64
    )
    backend = LlamaBackend(config)
    crowded = ModelRun(backend, config)
    prompts = [run.encode(STORY)[i * 7 : i * 7 + 60] for i in range(4)]
    numbers = [crowded.submit(prompt, max_tokens=16) for prompt in prompts]
    crowded.finish()
    for number, prompt in zip(numbers, prompts, strict=True):
        same(run, prompt, run.answer(prompt), crowded.tokens[number])
    backend.close()


async def test_a_long_prompt_is_aborted_within_a_second_and_the_next_request_works(
    run: ModelRun, starter: Path
) -> None:
    config = EngineConfig(model_path=starter, context_tokens=6144)
    loaded = load(config)
    try:
        prompt = loaded.tokenizer.encode(STORY * 10)[:4000]
        question = loaded.tokenizer.encode(TEXTS[0])
        before = [o async for o in loaded.engine.submit(question, GREEDY)]
        stream = loaded.engine.submit(prompt, GREEDY)
        await anext(stream)
        await asyncio.sleep(0.05)
        asked = perf_counter()
        stream.abort()
        outputs = [output async for output in stream]
        # The bar of a stop: one second, also in the middle of a long prompt.
        assert perf_counter() - asked < 1.0
        assert outputs[-1].finish_reason is FinishReason.ABORT
        assert outputs[-1].num_prompt_tokens_read < 4000
        after = [o async for o in loaded.engine.submit(question, GREEDY)]
        # Its prompt is held now and one token of it is computed: another shape.
        same(
            run, question, *(sum((list(o.token_ids) for o in each), []) for each in (before, after))
        )
    finally:
        loaded.engine.close()


def test_an_abort_beside_a_writer_leaves_its_text(run: ModelRun) -> None:
    prompt = run.encode(TEXTS[1])
    expected = run.answer(prompt)
    writer = run.submit(prompt)
    choose = random.Random(1)
    while run.engine.has_work:
        other = run.submit(run.encode(STORY)[: choose.randrange(50, 120)])
        run.step()
        # The step after an abort ends early, for everybody in it.
        run.engine.abort_step()
        for output in run.engine.step():
            assert isinstance(output, RequestFailure) is False
        run.engine.check()
        run.engine.abort_request(other)
        if writer in run.ended:
            break
    run.finish()
    same(run, prompt, expected, run.tokens[writer])


def test_damaged_cells_fail_one_request_and_the_same_prompt_works_again(run: ModelRun) -> None:
    """K and V that are not numbers stay in their cells until the memory is overwritten."""
    prompt = run.encode(STORY)[:120]
    expected = run.answer(prompt)
    _damage(run, sequence_id=0)
    writer_prompt = run.encode(TEXTS[1])
    writer = run.submit(writer_prompt, max_tokens=30)
    run.step()
    number = run.submit([*prompt, *expected, *run.encode(" Then")])
    run.finish()
    assert isinstance(run.last[number], RequestFailure)
    assert run.answer(prompt) == expected
    same(run, writer_prompt, run.answer(writer_prompt, max_tokens=30), run.tokens[writer])


def _damage(run: ModelRun, sequence_id: int) -> None:
    """Write a state whose K and V are not numbers, as a computation gone wrong leaves it."""
    pointer = run.backend.kv_memory._pointer
    size = bindings.llama_state_seq_get_size(pointer, sequence_id)
    state = np.zeros(size, np.uint8)
    data = state.ctypes.data_as(bindings.ctypes.POINTER(bindings.ctypes.c_uint8))
    assert bindings.llama_state_seq_get_data(pointer, data, size, sequence_id) == size
    # Behind the list of cells; the few words between the layers stay as they are.
    half = state[: size // 2 * 2].view(np.uint16)
    is_number = np.abs(half[size // 8 :].view(np.float16)) > 1e-3
    half[size // 8 :][is_number] = 0x7E00
    assert bindings.llama_state_seq_set_data(pointer, data, size, sequence_id) == size


@pytest.mark.parametrize("num_failures", [1, 2])
def test_a_computation_that_fails_once_is_tried_again_and_twice_fails_its_request(
    run: ModelRun, num_failures: int
) -> None:
    prompt = run.encode(TEXTS[1])
    expected = run.answer(prompt)
    number = run.submit(prompt)
    decode = run.backend.kv_memory.decode
    run.backend.kv_memory.decode = lambda parts, **_: StepFailure.BROKEN  # type: ignore[method-assign]
    for _ in range(num_failures):
        run.step()
    run.backend.kv_memory.decode = decode  # type: ignore[method-assign]
    run.finish()
    assert isinstance(run.last[number], RequestFailure) == (num_failures == 2)
    assert run.tokens[number] == ([] if num_failures == 2 else expected)
    assert run.answer(prompt) == expected
