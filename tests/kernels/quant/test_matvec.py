"""A packed matrix times a few vectors."""

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.quant.activations import (
    dequantize_activations,
    quantize_activations,
    quantize_activations_reference,
)
from kernels.quant.matvec import matvec, matvec_reference
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import TYPES, Packed, odd_columns, packed, vectors


def rounded(x: Tensor) -> Tensor:
    return dequantize_activations(quantize_activations_reference(x))


def product(x: Tensor, weights: Packed, bias: Tensor | None = None) -> Tensor:
    answer = x.double() @ weights.exact.double().T
    return answer if bias is None else answer + bias.double()


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize(("num_tokens", "num_rows"), [(1, 1), (3, 9)])
def test_it_is_the_product_with_the_rounded_vectors(
    memory: Memory, type_name: str, num_tokens: int, num_rows: int
) -> None:
    weights = packed(type_name, num_rows, odd_columns(type_name))
    x = vectors(num_tokens, weights.matrix.num_columns)
    with interpreted():
        answer = matvec(x, weights.matrix)
    assert_close_to_exact(answer, product(rounded(x), weights))


@pytest.mark.parametrize("type_name", TYPES)
def test_rows_longer_than_a_step_are_multiplied_to_their_end(
    memory: Memory, type_name: str
) -> None:
    weights = packed(type_name, 2, 1024 + odd_columns(type_name))
    x = vectors(2, weights.matrix.num_columns)
    with interpreted():
        answer = matvec(x, weights.matrix)
    assert_close_to_exact(answer, product(rounded(x), weights))


@pytest.mark.parametrize("type_name", TYPES)
def test_the_exact_mode_rounds_no_vector(memory: Memory, type_name: str) -> None:
    weights = packed(type_name, 5, odd_columns(type_name))
    x, bias = vectors(3, weights.matrix.num_columns), torch.randn(5)
    with interpreted():
        answer = matvec(x, weights.matrix, bias, is_exact=True)
    assert_close_to_exact(answer, product(x, weights, bias))
    reference = matvec_reference(x, weights.matrix, bias, dtype=torch.float32, is_exact=True)
    assert_close_to_exact(reference, product(x, weights, bias))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_eight_short_vectors_and_a_bias_are_rounded_once(
    memory: Memory, dtype: torch.dtype
) -> None:
    weights = packed("Q4_K", 6, 512)
    x, bias = vectors(8, 512, dtype), torch.randn(6).to(dtype)
    with interpreted():
        answer = matvec(x, weights.matrix, bias)
    assert answer.dtype == dtype
    assert_close_to_exact(answer, product(rounded(x), weights, bias))


@pytest.mark.parametrize("type_name", TYPES)
def test_the_reference_is_the_same_product(type_name: str) -> None:
    weights = packed(type_name, 9, 1024)
    x = vectors(5, 1024)
    answer = matvec_reference(x, weights.matrix, dtype=torch.float32)
    assert_close_to_exact(answer, product(rounded(x), weights))


def test_vectors_that_were_rounded_before_serve_several_matrices(memory: Memory) -> None:
    first, second = packed("Q8_0", 3, 288), packed("Q5_0", 2, 288)
    x = vectors(2, 288)
    with interpreted():
        made = quantize_activations(x)
        for weights in (first, second):
            answer = matvec(made, weights.matrix, dtype=torch.float32)
            assert torch.equal(answer, matvec(x, weights.matrix))


def test_the_answer_of_a_token_does_not_depend_on_the_others(memory: Memory) -> None:
    weights = packed("Q4_0", 4, 288)
    x = vectors(7, 288)
    with interpreted():
        together = matvec(x, weights.matrix)
        alone = torch.cat([matvec(row, weights.matrix) for row in x.split(1)])
    assert torch.equal(together, alone)


def test_nine_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="one and 8 vectors of 288 numbers are needed, not 9"):
        matvec(vectors(9, 288), packed("Q4_0", 4, 288).matrix)


def test_rounded_vectors_are_not_taken_for_exact_ones() -> None:
    made = quantize_activations_reference(vectors(1, 288))
    with pytest.raises(ValueError, match="not exact"):
        matvec(made, packed("Q4_0", 4, 288).matrix, dtype=torch.float32, is_exact=True)
