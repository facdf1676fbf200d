"""What the head of a GGUF file tells of its weights."""

from pathlib import Path

import pytest
from gguf import GGMLQuantizationType, GGUFReader

from engine.backends.llama_cpp.gguf_header import BLOCKS, Tensor
from engine.backends.llama_cpp.matrix_product import TYPES as KINDS
from engine.backends.llama_cpp.weights import Weights, read_weights
from engine.errors import ModelDamaged, ModelNotFound
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


def test_another_reader_finds_the_same_tensors(starter: Path) -> None:
    theirs = {
        each.name: (each.tensor_type.name, tuple(map(int, each.shape)), int(each.n_bytes))
        for each in GGUFReader(starter).tensors
    }
    ours = {
        each.name: (each.type_name, each.shape, each.num_bytes)
        for each in read_weights(starter).tensors
    }
    assert ours == theirs


def test_the_sizes_of_blocks_are_those_of_the_format() -> None:
    from gguf import GGML_QUANT_SIZES

    for number, (name, *sizes) in BLOCKS.items():
        kind = GGMLQuantizationType[name]
        assert kind.value == number and GGML_QUANT_SIZES[kind] == tuple(sizes)
    assert KINDS.items() <= {block.name: kind for kind, block in BLOCKS.items()}.items()


def test_the_starter_model_multiplies_with_every_weight_but_reads_its_head_once(
    starter: Path,
) -> None:
    weights = read_weights(starter)
    assert weights.main_type == "Q4_1"
    # 134.5 million parameters, of which the embedding is the head, too.
    assert weights.layer_multiply_adds + weights.head_multiply_adds == pytest.approx(134.5e6, 1e-3)
    assert weights.head_multiply_adds == 49_152 * 576


def test_a_head_of_its_own_takes_the_embedding_out_of_the_count() -> None:
    embedding = Tensor("token_embd.weight", (8, 100), KINDS["F16"])
    head = Tensor("output.weight", (8, 100), KINDS["Q8_0"])
    layer = Tensor("blk.0.ffn_up.weight", (8, 32), KINDS["F16"])
    norm = Tensor("output_norm.weight", (8,), KINDS["F32"])
    weights = Weights((embedding, head, layer, norm))
    assert (weights.layer_multiply_adds, weights.head_multiply_adds) == (256, 800)
    assert weights.bytes_of_a_step == 512 + 850
    assert Weights((embedding, layer)).bytes_of_a_step == 512 + 1600


def test_of_experts_a_token_meets_some() -> None:
    experts = Tensor("blk.0.ffn_up_exps.weight", (8, 32, 4), KINDS["F16"])
    weights = Weights((experts,), experts_used=1, experts=4)
    assert (weights.layer_multiply_adds, weights.bytes_of_a_step) == (256, 512)


@pytest.mark.parametrize("kind", ["llama", "gemma3", "mamba", "jamba", "lfm2"])
def test_every_kind_of_model_can_be_read(tmp_path: Path, kind: str) -> None:
    weights = read_weights(write_tiny_model(tmp_path / "tiny.gguf", kind))
    assert weights.layer_multiply_adds > 0 and weights.bytes_of_a_step > 0


def test_a_file_that_breaks_off_or_is_missing_is_one_sentence(
    tmp_path: Path, starter: Path
) -> None:
    part = tmp_path / "part.gguf"
    with starter.open("rb") as file:
        part.write_bytes(file.read(1_700_000))
    with pytest.raises(ModelDamaged, match=r"part.gguf is cut off or damaged"):
        read_weights(part)
    with pytest.raises(ModelNotFound):
        read_weights(tmp_path / "missing.gguf")
