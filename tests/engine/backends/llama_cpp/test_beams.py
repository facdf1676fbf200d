"""Beam search on real models beside that of transformers, on the same float32 weights and KV."""

import asyncio
import ctypes
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from engine.async_engine import AsyncEngine
from engine.backends.llama_cpp import context, context_params
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.beam_search import BeamResult, search
from engine.config import EngineConfig
from engine.engine import Engine
from engine.guided.answer import Guidance
from engine.guided.compiler import compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.vocabulary import GuidedVocabulary
from engine.request import IN_FRONT
from engine.sampling.beam import BeamParams, EarlyStopping
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.engine.run import GREEDY

GOLDENS = json.loads(
    (Path(__file__).parents[2] / "sampling" / "beams.json").read_text(encoding="utf-8")
)
MAX_TOKENS = 12
F32 = 0


class Room:
    def __init__(self, model: Path) -> None:
        config = EngineConfig(model_path=model, context_tokens=1024, max_batch_tokens=64, threads=1)
        self.backend = LlamaBackend(config)
        self.engine = AsyncEngine(Engine(self.backend, config), self.backend.max_request_tokens)

    def search(
        self, golden: dict[str, Any], guidance: Guidance | None = None, max_tokens: int = MAX_TOKENS
    ) -> BeamResult:
        stopping = str(golden.get("early_stopping", False)).lower()
        beams = BeamParams(
            num_beams=golden["num_beams"],
            num_answers=golden["num_beams"],
            length_penalty=golden.get("length_penalty", 1.0),
            early_stopping=EarlyStopping(stopping),
        )
        params = replace(GREEDY, max_tokens=max_tokens, ignore_eos=False)
        tokenizer = self.backend.tokenizer
        return asyncio.run(
            search(self.engine, tokenizer, golden["prompt"], beams, params, IN_FRONT, guidance)
        )


@pytest.fixture(scope="module")
def exact_kv() -> Iterator[None]:
    """Attention in float32, which nobody can choose: flash attention would round K and V."""

    def exact_params(**facts: Any) -> Any:
        params = context_params.make_params(**facts)
        params.type_k = params.type_v = F32
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        return params

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "make_params", exact_params)
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, exact_kv: None) -> Iterator[Room]:
    room = Room(write_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))
    yield room
    room.engine.close()


@pytest.fixture(scope="module")
def exact_starter(
    starter: Path, tmp_path_factory: pytest.TempPathFactory, exact_kv: None
) -> Iterator[Room]:
    path = tmp_path_factory.mktemp("exact") / "starter.gguf"
    dequantise(starter, path)
    room = Room(path)
    yield room
    room.engine.close()
    path.unlink()


def dequantise(source: Path, target: Path) -> None:
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = F32
    params.allow_requantize = True
    failed = llama_cpp.llama_model_quantize(bytes(source), bytes(target), ctypes.byref(params))
    assert not failed


def assert_same(result: BeamResult, golden: dict[str, Any]) -> None:
    """The same answers with the same scores; where two scores tie, either order."""
    end = golden["end"]
    assert len(result.answers) == len(golden["answers"])
    for answer, expected in zip(result.answers, golden["answers"], strict=True):
        token_ids = [each for each in expected["token_ids"] if each != end]
        if expected["score"] is None:
            assert list(answer.token_ids) == token_ids
            continue
        assert answer.score == pytest.approx(expected["score"], abs=1e-3)
        is_tied = sum(abs(other["score"] - expected["score"]) < 2e-3 for other in golden["answers"])
        assert is_tied > 1 or list(answer.token_ids) == token_ids


def name_of(golden: dict[str, Any]) -> str:
    return "-".join(str(value) for key, value in golden.items() if key not in ("prompt", "answers"))


@pytest.mark.parametrize("golden", GOLDENS["tiny"], ids=name_of)
def test_a_tiny_model_gives_the_beams_of_transformers(tiny: Room, golden: dict[str, Any]) -> None:
    assert_same(tiny.search(golden), golden)


@pytest.mark.model
@pytest.mark.parametrize("golden", GOLDENS["starter"], ids=name_of)
def test_the_starter_gives_the_beams_of_transformers(
    exact_starter: Room, golden: dict[str, Any]
) -> None:
    assert_same(exact_starter.search(golden), golden)


def test_beams_of_a_real_vocabulary_are_in_their_form(tiny: Room) -> None:
    grammar = Grammar(GrammarKind.REGEX, "(a|b|c){2,6}!")
    form = compile_grammar(grammar, GuidedVocabulary(tiny.backend.tokenizer))
    golden = GOLDENS["tiny"][0] | {"num_beams": 5}
    result = tiny.search(golden, Guidance(form))
    assert len(result.answers) == 5
    for answer in result.answers:
        assert answer.text.endswith("!") and set(answer.text[:-1]) <= set("abc")
