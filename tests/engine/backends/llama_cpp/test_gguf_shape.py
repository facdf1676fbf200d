"""The measures from a header are those that llama.cpp tells of the loaded model."""

from pathlib import Path

import pytest

from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.gguf_header import GGUFHeader, Tensor
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.backends.llama_cpp.model import LlamaModel
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


def both(path: Path) -> tuple[object, ...]:
    shape = shape_of(check_chat_file(path))
    model = LlamaModel(path, facts_only=True)
    info, context = model.info(), model.context_shape
    model.close()
    assert shape.num_parameters == info.num_parameters
    assert shape.num_bytes == info.num_bytes
    assert shape.trained_context == info.trained_context
    return shape.context, context


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_a_tiny_model_measures_the_same_unloaded(tmp_path: Path, architecture: str) -> None:
    unloaded, loaded = both(write_tiny_model(tmp_path / "tiny.gguf", architecture))
    assert unloaded == loaded


@pytest.mark.model
def test_the_starter_measures_the_same_unloaded(starter: Path) -> None:
    unloaded, loaded = both(starter)
    assert unloaded == loaded


@pytest.mark.parametrize("architecture", ["mamba", "jamba", "lfm2"])
def test_a_model_whose_state_is_one_whole_is_known_as_such(
    tmp_path: Path, architecture: str
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", architecture)
    assert not shape_of(check_chat_file(path)).context.is_cut_anywhere


def header(*tensors: Tensor, **values: int) -> GGUFHeader:
    facts = {"general.architecture": "llama", **{f"llama.{k}": v for k, v in values.items()}}
    return GGUFHeader(3, facts, {}, tensors, 0)


def test_the_table_of_words_is_read_only_where_it_is_the_last_layer_too() -> None:
    table = Tensor("token_embd.weight", (10, 100), 1)
    output = Tensor("output.weight", (10, 100), 8)
    tied = shape_of([header(table)])
    assert tied.multiplied == {"F16": 1000} and tied.read_bytes == 2000
    apart = shape_of([header(table, output)])
    assert apart.multiplied == {"Q8_0": 1000}
    assert apart.num_parameters == 2000


def test_of_experts_only_those_that_are_asked_are_read() -> None:
    experts = Tensor("blk.0.ffn_up_exps.weight", (10, 100, 8), 0)
    shape = shape_of([header(experts, expert_count=8, expert_used_count=2)])
    assert shape.multiplied == {"F32": 2000}
    assert (shape.read_bytes, shape.num_bytes) == (8000, 32000)


def test_all_files_of_a_model_count() -> None:
    parts = [header(Tensor(f"blk.{n}.ffn_up.weight", (10, 10), 0)) for n in range(2)]
    assert shape_of(parts).num_parameters == 200
