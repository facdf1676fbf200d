"""A packed matrix times many vectors."""

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.quant.matmul import TILES, matmul, matmul_reference, tile_for
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import TYPES, Packed, odd_columns, packed, vectors


def product(x: Tensor, weights: Packed, bias: Tensor | None = None) -> Tensor:
    """Of weights that were rounded to the type of x, as they are beside the tensor cores."""
    answer = x.double() @ weights.exact.to(x.dtype).double().T
    return answer if bias is None else answer + bias.double()


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize(("num_tokens", "num_rows"), [(9, 1), (17, 70)])
def test_it_is_the_product(memory: Memory, type_name: str, num_tokens: int, num_rows: int) -> None:
    weights = packed(type_name, num_rows, odd_columns(type_name))
    x = vectors(num_tokens, weights.matrix.num_columns, torch.bfloat16)
    with interpreted():
        answer = matmul(x, weights.matrix)
    assert answer.dtype == torch.bfloat16
    assert_close_to_exact(answer, product(x, weights))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_more_tokens_than_a_tile_get_a_bias(memory: Memory, dtype: torch.dtype) -> None:
    weights = packed("Q5_K", 3, 256)
    x, bias = vectors(TILES[-1].tokens + 1, 256, dtype), torch.randn(3).to(dtype)
    with interpreted():
        answer = matmul(x, weights.matrix, bias)
    assert_close_to_exact(answer, product(x, weights, bias))


@pytest.mark.parametrize("type_name", TYPES)
def test_the_reference_is_the_same_product(type_name: str) -> None:
    weights = packed(type_name, 9, 1024)
    x = vectors(20, 1024, torch.bfloat16)
    assert_close_to_exact(matmul_reference(x, weights.matrix), product(x, weights))


def test_a_tile_takes_all_tokens_where_one_can() -> None:
    assert [tile_for(count).tokens for count in (9, 16, 17, 64, 65, 512)] == [
        16,
        16,
        64,
        64,
        128,
        128,
    ]


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="Vectors of 256 numbers are needed, not of 288"):
        matmul(vectors(9, 288), packed("Q4_K", 4, 256).matrix)
