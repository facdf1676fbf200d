"""From tensors to a decoder: one at a time, joined where they are packed alike."""

import gc
import weakref
from pathlib import Path

import gguf
import pytest
import torch

from engine.backends.torch.gguf_model import open_gguf
from engine.backends.torch.gguf_weights import GGUFWeights
from engine.backends.torch.placement import Placement
from engine.backends.torch.weight_source import Matrix
from engine.errors import ModelDamaged
from kernels.quant.planes import QuantizedMatrix
from tests.engine.backends.torch.tiny_gguf import write_tiny_gguf

Q8 = gguf.GGMLQuantizationType.Q8_0


def placement(*, keeps_packed: bool) -> Placement:
    return Placement(device=torch.device("cpu"), dtype=torch.float32, keeps_packed=keeps_packed)


def test_no_more_than_one_tensor_of_the_file_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, "llama", packed=Q8)
    opened = open_gguf(path)
    read = GGUFWeights.read
    living: list[weakref.ref[torch.Tensor]] = []
    most = 0

    def watched(source: GGUFWeights, name: str) -> Matrix:
        nonlocal most
        gc.collect()
        most = max(most, sum(each() is not None for each in living))
        weight = read(source, name)
        if isinstance(weight, QuantizedMatrix):
            living.append(weakref.ref(weight.planes["low"]))
        return weight

    monkeypatch.setattr(GGUFWeights, "read", watched)
    opened.loader(placement(keeps_packed=False), lambda done, total: None).load(64)
    assert len(living) > 20
    # The one before is let go when the next one is there.
    assert most <= 1


def test_what_is_packed_alike_is_one_matrix_and_what_is_not_stays_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, "llama with a bias", packed=Q8)
    opened = open_gguf(path)
    read = GGUFWeights.read
    packed = opened.loader(placement(keeps_packed=True), lambda done, total: None).load(64)
    attention = packed.layers[0].attention
    (matrix,) = attention.query_key_value.matrices
    assert isinstance(matrix, QuantizedMatrix) and matrix.num_rows == 64 + 32 + 32
    (bias,) = attention.query_key_value.biases
    assert bias is not None and bias.shape == (128,)

    def mixed(each: GGUFWeights, name: str) -> Matrix:
        weight = read(each, name)
        if name.endswith("attn_v.weight") and isinstance(weight, QuantizedMatrix):
            return torch.zeros(weight.num_rows, weight.num_columns)
        return weight

    monkeypatch.setattr(GGUFWeights, "read", mixed)
    apart = opened.loader(placement(keeps_packed=True), lambda done, total: None).load(64)
    matrices = apart.layers[0].attention.query_key_value.matrices
    assert [isinstance(each, QuantizedMatrix) for each in matrices] == [True, False]
    x = torch.randn(3, 64)
    found = apart.layers[0].attention.query_key_value(x)
    torch.testing.assert_close(found[:, :96], attention.query_key_value(x)[:, :96])
    assert (found[:, 96:] == apart.layers[0].attention.query_key_value.biases[1]).all()


def test_a_weight_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, "qwen3")
    opened = open_gguf(path)
    del opened.source._found["blk.1.attn_q_norm.weight"]  # type: ignore[attr-defined]
    with pytest.raises(ModelDamaged, match=r"lacks the weights blk\.1\.attn_q_norm"):
        opened.loader(placement(keeps_packed=False), lambda done, total: None).load(64)
