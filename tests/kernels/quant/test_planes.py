"""Planes hold the bytes of the file, each once."""

import numpy as np
import pytest
import torch
from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

from kernels.quant.dequantize import dequantize_reference
from kernels.quant.planes import QuantizedMatrix, half_split_order, join_rows
from tests.kernels.quant.packed import TYPES, oracle, packed


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("num_rows", [1, 5])
@pytest.mark.parametrize("num_columns", [256, 1024])
def test_the_bytes_of_the_file_come_back(type_name: str, num_rows: int, num_columns: int) -> None:
    weights = packed(type_name, num_rows, num_columns)
    assert torch.equal(weights.matrix.to_bytes(), weights.data)
    assert weights.matrix.num_bytes == weights.data.numel()


@pytest.mark.parametrize("type_name", TYPES)
def test_a_single_block_comes_back_from_an_odd_address(type_name: str) -> None:
    """A view of part of a file may start anywhere; planes are read in words."""
    weights = packed(type_name, 1, 256)
    shifted = torch.cat((torch.zeros(1, dtype=torch.uint8), weights.data.flatten()))[1:]
    matrix = QuantizedMatrix.from_bytes(type_name, 1, 256, shifted)
    assert torch.equal(matrix.to_bytes(), weights.data)
    assert all(plane.data_ptr() % 16 == 0 for plane in matrix.planes.values())


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("num_heads", [1, 3])
def test_rows_of_llama_are_put_back_as_transformers_does(type_name: str, num_heads: int) -> None:
    num_rows = 8 * num_heads
    weights = packed(type_name, num_rows, 256)
    order = half_split_order(num_rows, num_heads)
    ordered = weights.matrix.permute_rows(order)
    processor = LlamaTensorProcessor(config={})
    wanted = processor._reverse_permute_weights(weights.exact.numpy(), num_heads)
    assert np.array_equal(oracle(type_name, ordered.to_bytes().numpy()), wanted)
    assert np.array_equal(dequantize_reference(ordered).numpy(), wanted)


def test_heads_of_an_odd_size_cannot_be_put_back() -> None:
    with pytest.raises(ValueError, match="21 rows are no 3 heads"):
        half_split_order(21, 3)


@pytest.mark.parametrize("type_name", TYPES)
def test_joined_and_cut_rows_are_those_of_the_parts(type_name: str) -> None:
    first, second = packed(type_name, 3, 512), packed(type_name, 2, 512)
    joined = join_rows([first.matrix, second.matrix])
    assert joined.num_rows == 5
    assert torch.equal(joined.to_bytes(), torch.cat((first.data, second.data)))
    cut = joined.rows(1, 4)
    assert torch.equal(cut.to_bytes(), joined.to_bytes()[1:4])
    assert cut.planes["low"].data_ptr() == joined.planes["low"][1:].data_ptr()
    assert all(plane.data_ptr() % 16 == 0 for plane in cut.planes.values())


def test_matrices_of_two_types_are_not_joined() -> None:
    with pytest.raises(ValueError, match="one type and width"):
        join_rows([packed("Q4_K", 1, 256).matrix, packed("Q6_K", 1, 256).matrix])


def test_a_wrong_number_of_bytes_is_refused_with_both_figures() -> None:
    with pytest.raises(ValueError, match="2 rows of 64 columns in Q8_0 are 136 bytes.* 135 of"):
        QuantizedMatrix.from_bytes("Q8_0", 2, 64, torch.zeros(135, dtype=torch.uint8))


def test_an_empty_matrix_has_the_planes_of_a_full_one() -> None:
    for type_name in TYPES:
        full = packed(type_name, 5, 1024).matrix
        empty = QuantizedMatrix.empty(type_name, 5, 1024, "meta")
        assert {name: (plane.shape, plane.dtype) for name, plane in full.planes.items()} == {
            name: (plane.shape, plane.dtype) for name, plane in empty.planes.items()
        }
