"""Packed weights as numbers."""

import pytest
import torch

from kernels.choice import interpreted
from kernels.quant.dequantize import dequantize, dequantize_reference
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import TYPES, odd_columns, packed


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("num_rows", [1, 7])
@pytest.mark.parametrize("num_columns", [256, 1024])
def test_the_reference_has_the_bits_of_gguf(
    type_name: str, num_rows: int, num_columns: int
) -> None:
    weights = packed(type_name, num_rows, num_columns)
    numbers = dequantize_reference(weights.matrix)
    assert torch.equal(numbers.view(torch.int32), weights.exact.view(torch.int32))


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("num_rows", [1, 5])
def test_the_kernel_has_the_numbers_of_gguf(memory: Memory, type_name: str, num_rows: int) -> None:
    """Also past the first 1,024 columns, and where a step ends beyond the row."""
    weights = packed(type_name, num_rows, 1024 + odd_columns(type_name))
    with interpreted():
        numbers = dequantize(weights.matrix, torch.float32)
    assert torch.equal(numbers, weights.exact)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("type_name", TYPES)
def test_the_kernel_rounds_once(memory: Memory, type_name: str, dtype: torch.dtype) -> None:
    weights = packed(type_name, 3, odd_columns(type_name))
    with interpreted():
        numbers = dequantize(weights.matrix, dtype)
    assert torch.equal(numbers, weights.exact.to(dtype))
