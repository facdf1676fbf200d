"""Every kind of model from a GGUF file: against transformers exactly, against llama.cpp nearly."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.gguf_header import read_header
from engine.backends.llama_cpp.step_batch import Part as LlamaPart
from engine.backends.torch.gguf_weights import GGUFWeights
from engine.config import EngineConfig
from tests.engine.backends.torch.tiny_gguf import ARCHITECTURES, write_tiny_gguf
from tests.engine.backends.torch.torch_run import logits_of, opened

# A few roundings of the largest logit: both sum the same numbers in other orders.
ROUNDINGS = 30
# llama.cpp keeps K and V in float16, and turns its activations to eight bits for quantised weights.
NEARLY = 2e-2
# Of each way to order and to join rows one.
QUANTIZED = ("llama with a bias", "qwen3", "phi4")
TOKENS = [1, *range(70, 155)]
# llama.cpp looks back to the first token there, and we as far as the file says.
IGNORES_WINDOW = ("phi3",)


@pytest.mark.parametrize(
    ("kind", "is_quantized"),
    [(kind, False) for kind in ARCHITECTURES] + [(kind, True) for kind in QUANTIZED],
)
def test_logits_are_those_of_transformers(kind: str, is_quantized: bool, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    model = write_tiny_gguf(
        path, kind, packed=gguf.GGMLQuantizationType.Q8_0 if is_quantized else None
    )
    with torch.no_grad():
        expected = model(torch.tensor([TOKENS])).logits[0].numpy()
    found = logits_of(opened(path), TOKENS, [40, 1])
    assert np.abs(found - expected).max() <= (
        ROUNDINGS * np.finfo(np.float32).eps * np.abs(expected).max()
    )


@pytest.mark.parametrize("kind", sorted(ARCHITECTURES.keys() - set(IGNORES_WINDOW)))
def test_logits_are_nearly_those_of_llama_cpp(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, kind)
    found, expected = logits_of(opened(path), TOKENS, [40]), llama_logits(path)
    assert np.linalg.norm(found - expected) <= NEARLY * np.linalg.norm(expected)


def llama_logits(path: Path) -> NDArray[np.float32]:
    llama = LlamaBackend(EngineConfig(model_path=path, context_tokens=256, threads=1))
    rows = []
    for place, token_id in enumerate(TOKENS):
        assert llama.kv_memory.decode([LlamaPart(0, place, [token_id], 1)]) is None
        rows.append(llama.kv_memory.logits(1)[0].copy())
    llama.close()
    return np.stack(rows)


def test_types_without_a_kernel_become_numbers_and_that_is_said(tmp_path: Path) -> None:
    """Q5_1 is none of the packed types: it goes through ggml's own functions, to bfloat16."""
    path = tmp_path / "tiny.gguf"
    model = write_tiny_gguf(path, "llama", packed=gguf.GGMLQuantizationType.Q5_1)
    source = GGUFWeights(path, [read_header(path)])
    assert "Q5_1" in source.notice
    weight = source.read("blk.0.ffn_down.weight")
    assert isinstance(weight, torch.Tensor) and weight.dtype == torch.bfloat16
    expected = model.model.layers[0].mlp.down_proj.weight
    torch.testing.assert_close(weight, expected.detach().to(torch.bfloat16))
    with torch.no_grad():
        logits = model(torch.tensor([TOKENS])).logits[0].numpy()
    found = logits_of(opened(path), TOKENS, [])
    assert np.linalg.norm(found - logits) <= NEARLY * np.linalg.norm(logits)
