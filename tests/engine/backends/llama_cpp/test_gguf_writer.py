from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.backends.llama_cpp.gguf_header import read_header
from engine.backends.llama_cpp.gguf_writer import Q8_0, f32_tensor, q8_tensor, write_gguf

VALUES = {
    "general.architecture": "bert",
    "a.number": 7,
    "a.part": 0.5,
    "a.choice": True,
    "some.texts": ["one", "zwei", "\u4e09"],
    "some.numbers": [1, -2],
    "some.parts": [0.25, -1.0],
}


def test_what_was_written_is_read_by_us_and_by_others(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_gguf(path, VALUES, [f32_tensor("first", array), f32_tensor("second", array[0])])
    header = read_header(path)
    assert header.values["a.number"] == 7
    assert header.values["some.numbers"] == (1, -2)
    assert header.lengths["some.texts"] == 3
    assert header.needed_bytes <= path.stat().st_size
    read = gguf.GGUFReader(path)
    assert read.fields["some.texts"].contents() == VALUES["some.texts"]
    assert read.fields["a.choice"].contents() is True
    assert [tensor.name for tensor in read.tensors] == ["first", "second"]
    np.testing.assert_array_equal(read.tensors[0].data, array)


def test_eight_bits_are_those_of_ggml() -> None:
    values = np.random.default_rng(1).normal(0, 3, (5, 64)).astype(np.float32)
    values[2, :32] = 0
    tensor = q8_tensor("weights", values)
    assert (tensor.kind, tensor.shape) == (Q8_0, (64, 5))
    theirs = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    assert tensor.data == theirs.tobytes()


def test_what_cannot_be_written_whole_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    with pytest.raises(TypeError):
        write_gguf(path, {}, [None])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []
