"""The name of all that changes KV changes with each of it, and with nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.backends.llama_cpp import context_params
from engine.backends.llama_cpp.context_params import kv_namespace, make_params
from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.model import LlamaModel
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    opened = LlamaModel(write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf"))
    yield opened
    opened.close()


def params(**changes: Any) -> Any:
    made = make_params(num_cells=512, num_sequences=4, max_batch_tokens=64, kv_type="f16")
    for name, value in changes.items():
        assert getattr(made, name) != value
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "change",
    [
        {"type_k": 8},
        {"type_v": 8},
        {"flash_attn_type": 0},
        {"kv_unified": False},
        {"swa_full": False},
        {"rope_scaling_type": 2},
        {"rope_freq_base": 1e6},
        {"rope_freq_scale": 0.5},
        {"yarn_ext_factor": 1.0},
        {"yarn_attn_factor": 2.0},
        {"yarn_beta_fast": 16.0},
        {"yarn_beta_slow": 2.0},
        {"yarn_orig_ctx": 4096},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_kv_changes_its_name(model: LlamaModel, change: dict[str, Any]) -> None:
    assert kv_namespace(params(**change), model) != kv_namespace(params(), model)


def test_the_size_of_a_context_does_not_change_the_name(model: LlamaModel) -> None:
    """Another number of cells or seats, and what was stored is found again."""
    changed = params(n_ctx=1024, n_seq_max=9, n_batch=32, n_ubatch=32, n_threads=7)
    name = kv_namespace(changed, model)
    assert name == kv_namespace(params(), model)
    assert len(name) == 32


def test_an_adapter_changes_the_name_and_taking_it_away_gives_it_back(model: LlamaModel) -> None:
    names = [
        kv_namespace(params(), model, adapters)
        for adapters in ((), (b"a 1.0",), (b"a 0.5",), (b"a 1.0", b"b 1.0"), (b"b 1.0", b"a 1.0"))
    ]
    assert len(set(names)) == len(names)
    assert kv_namespace(params(), model) == names[0]


def test_another_build_or_layout_or_window_changes_the_name(
    model: LlamaModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {kv_namespace(params(), model)}
    windowed = LlamaModel(write_tiny_model(tmp_path / "tiny.gguf", "gemma3"))
    names.add(kv_namespace(params(), windowed))
    windowed.close()
    monkeypatch.setattr(context_params, "KV_LAYOUT", 0)
    names.add(kv_namespace(params(), model))
    for build in (("1", "a", "AVX"), ("1", "b", "AVX"), ("1", "a", "AVX2"), ("2", "a", "AVX")):
        monkeypatch.setattr(context_params, "build_name", lambda build=build: build)
        names.add(kv_namespace(params(), model))
    assert len(names) == 7


def test_every_context_reads_only_the_cells_that_a_chat_sees() -> None:
    """ggml-org/llama.cpp#10054, #25804: without flash attention a short chat was four times
    as slow beside 7,500 tokens of others. It is asked for, not left to llama.cpp."""
    made = params()
    assert made.flash_attn_type == bindings.LLAMA_FLASH_ATTN_TYPE_ENABLED
    assert made.kv_unified
    assert made.swa_full
