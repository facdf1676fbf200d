"""A draft model beside a real one: two quantisations of the starter."""

import ctypes
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.backends.llama_cpp.backend import LlamaBackend, draft_bytes
from engine.backends.llama_cpp.library import bindings
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import ModelNotFound, ModelUnsupported, OutOfMemory
from engine.loading import draft_config, load, open_backends
from engine.request import RequestOptions
from engine.sampling.draft_model import DraftModel, check_vocabularies
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.model_run import ModelRun, assert_same_up_to_near_ties
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes import EvenCosts

ASKED = [
    "Tell me a story about a bear who learns to swim.",
    "What is the capital of France, and why do people like it?",
]


@pytest.fixture(scope="module")
def coarser(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter in another quantisation."""
    path = tmp_path_factory.mktemp("draft") / "coarser.gguf"
    params = bindings.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = bindings.LLAMA_FTYPE_MOSTLY_Q4_0, True
    done = bindings.llama_model_quantize(
        os.fsencode(starter), os.fsencode(path), ctypes.byref(params)
    )
    assert done == 0
    return path


@pytest.fixture(scope="module")
def drafting(config: EngineConfig, coarser: Path) -> Iterator[LlamaBackend]:
    backend = LlamaBackend(draft_config(config, coarser))
    yield backend
    backend.close()


class DraftedRun(ModelRun):
    """Whatever can be guessed is."""

    def __init__(self, backend: LlamaBackend, config: EngineConfig, draft: LlamaBackend) -> None:
        super().__init__(backend, config)
        draft.kv_memory.clear()
        self.draft = DraftModel(draft, EvenCosts())
        self.engine = Engine(backend, config, DearCosts(), self.draft)


class DearCosts(EvenCosts):
    """Beside a step of this model a step of the draft model costs nothing."""

    def seconds(self, num_tokens: int, num_looks: int) -> float:
        return 1e3


@pytest.fixture
def drafted(backend: LlamaBackend, config: EngineConfig, drafting: LlamaBackend) -> DraftedRun:
    backend.kv_memory.accept_steps()
    backend.kv_memory.clear()
    return DraftedRun(backend, config, drafting)


def prompt(run: ModelRun, asked: str) -> list[int]:
    return run.encode(f"user\n{asked}\nassistant\n")


def test_most_guesses_of_a_coarser_copy_come_true_and_change_no_answer(
    drafted: DraftedRun, config: EngineConfig
) -> None:
    prompts = [prompt(drafted, asked) for asked in ASKED]
    numbers = [drafted.submit(token_ids, max_tokens=40) for token_ids in prompts]
    drafted.finish()
    drafted.draft.check()
    timings = [drafted.timings(number) for number in numbers]
    assert sum(each.accepted_tokens for each in timings) > 30
    drafted.backend.kv_memory.clear()
    plain = ModelRun(drafted.backend, config)
    for token_ids, number in zip(prompts, numbers, strict=True):
        alone = plain.answer(token_ids, max_tokens=40)
        model = drafted.backend._model
        assert_same_up_to_near_ties(model, token_ids, alone, drafted.tokens[number])


def test_a_reproducible_answer_does_not_ask_it(drafted: DraftedRun) -> None:
    options = RequestOptions(is_reproducible=True)
    number = drafted.submit(prompt(drafted, ASKED[0]), options, max_tokens=10)
    drafted.finish()
    assert drafted.timings(number).drafted_tokens == 0


async def test_a_model_is_loaded_with_its_draft_model(config: EngineConfig, coarser: Path) -> None:
    params = SamplingParams(max_tokens=8, ignore_eos=True)
    loaded = load(replace(config, draft_model_path=coarser))
    try:
        with loaded.engine.submit(loaded.tokenizer.encode(ASKED[0]), params) as stream:
            outputs = [output async for output in stream]
        assert sum(len(output.token_ids) for output in outputs) == 8
    finally:
        loaded.close()


def test_other_vocabularies_are_refused_before_anything_runs(
    config: EngineConfig, tmp_path: Path, backend: LlamaBackend
) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(ModelUnsupported, match="vocabularies differ"):
        open_backends(replace(config, draft_model_path=tiny))
    recurrent = LlamaBackend(
        draft_config(config, write_tiny_model(tmp_path / "mamba.gguf", "mamba"))
    )
    with pytest.raises(ModelUnsupported, match="cannot draft"):
        check_vocabularies(backend, recurrent)
    recurrent.close()
    with pytest.raises(ModelNotFound, match="nowhere"):
        open_backends(replace(config, draft_model_path=tmp_path / "nowhere.gguf"))


def test_its_memory_is_counted_before_the_model_takes_its_own(
    config: EngineConfig, coarser: Path
) -> None:
    needed = draft_bytes(draft_config(config, coarser))
    assert needed > coarser.stat().st_size / 2
    with pytest.raises(OutOfMemory, match="and the draft model need .* leave the draft model out"):
        LlamaBackend(config, beside_bytes=10**15)
