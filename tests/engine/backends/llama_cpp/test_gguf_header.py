"""What a GGUF file says of itself, against the writer and the table of the gguf library."""

from pathlib import Path

import gguf
import pytest

from engine.backends.llama_cpp.gguf_header import BLOCKS, BrokenHeader, read_header
from tests.engine.backends.llama_cpp.tiny_model import LAYERS, WIDTH, write_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    return write_tiny_model(folder / "tiny.gguf", sampling={"temp": 0.5, "top_k": 7})


def test_values_lists_and_tensors_are_those_that_were_written(tiny: Path) -> None:
    header = read_header(tiny)
    assert header.architecture == "llama"
    assert header.own("block_count") == LAYERS
    assert header.values["general.sampling.temp"] == 0.5
    assert header.number("general.sampling.top_k") == 7
    assert header.text("general.name") == "tiny llama"
    assert header.lengths["tokenizer.ggml.tokens"] == 267
    by_name = {tensor.name: tensor for tensor in header.tensors}
    assert by_name["token_embd.weight"].num_numbers == 267 * WIDTH
    assert by_name["token_embd.weight"].num_bytes == 267 * WIDTH * 4
    assert by_name["output_norm.weight"].shape == (WIDTH,)


def test_the_last_tensor_ends_with_the_file(tiny: Path) -> None:
    assert 0 <= tiny.stat().st_size - read_header(tiny).needed_bytes < 32


def test_a_list_over_the_layers_is_kept(tmp_path: Path) -> None:
    header = read_header(write_tiny_model(tmp_path / "jamba.gguf", "jamba"))
    assert header.values["jamba.attention.head_count_kv"] == (0, 2)
    assert header.own("attention.head_count_kv") == 2


def test_every_block_is_as_large_as_the_library_says() -> None:
    for number, block in BLOCKS.items():
        kind = gguf.GGMLQuantizationType(number)
        assert (kind.name, *gguf.GGML_QUANT_SIZES[kind]) == tuple(block)


@pytest.mark.parametrize("size", [4, 12, 24, 60, 400, 3000])
def test_a_header_that_breaks_off_is_known_as_broken(tiny: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "short.gguf"
    path.write_bytes(tiny.read_bytes()[:size])
    with pytest.raises(BrokenHeader):
        read_header(path)


def test_lengths_beyond_the_file_take_no_memory(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.gguf"
    data = tiny.read_bytes()
    at = data.index(b"tokenizer.ggml.scores") + len(b"tokenizer.ggml.scores") + 8
    path.write_bytes(data[:at] + (2**62).to_bytes(8, "little") + data[at + 8 :])
    with pytest.raises(BrokenHeader):
        read_header(path)
