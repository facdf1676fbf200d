"""The layer takes the path that suits its number of tokens."""

import pytest
import torch

from kernels.card import Card
from kernels.choice import interpreted
from kernels.launch import written_down
from kernels.quant.linear import MATMUL_TOKENS, linear, linear_reference
from kernels.quant.planes import QuantizedMatrix
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import TYPES, packed, vectors


@pytest.mark.parametrize(
    ("num_tokens", "dtype", "kernels"),
    [
        (1, torch.bfloat16, ["quantize_kernel", "matvec_kernel"]),
        (8, torch.float32, ["quantize_kernel", "matvec_kernel"]),
        (9, torch.bfloat16, ["matmul_kernel"]),
        (MATMUL_TOKENS, torch.float16, ["matmul_kernel"]),
        (MATMUL_TOKENS + 1, torch.bfloat16, ["dequantize_kernel"]),
        (9, torch.float32, ["dequantize_kernel"]),
    ],
)
def test_the_number_of_tokens_decides(
    num_tokens: int, dtype: torch.dtype, kernels: list[str]
) -> None:
    weight = QuantizedMatrix.empty("Q4_K", 48, 512, "meta")
    x = torch.empty(num_tokens, 512, dtype=dtype, device="meta")
    with written_down(Card.DESKTOP) as launches:
        answer = linear(x, weight)
    assert [launch.spec.name for launch in launches] == kernels
    assert answer.shape == (num_tokens, 48)
    assert answer.dtype == dtype


def test_an_exact_layer_rounds_no_token() -> None:
    weight = QuantizedMatrix.empty("Q4_K", 48, 512, "meta")
    with written_down(Card.DESKTOP) as launches:
        linear(torch.empty(3, 512, device="meta"), weight, is_exact=True)
    assert [launch.spec.name for launch in launches] == ["exact_matvec_kernel"]


@pytest.mark.parametrize("type_name", TYPES)
def test_the_processor_multiplies_with_the_numbers_of_the_file(type_name: str) -> None:
    weights = packed(type_name, 9, 512)
    x, bias = vectors(6, 512).view(2, 3, 512), torch.randn(9)
    wanted = x.double() @ weights.exact.double().T + bias.double()
    assert_close_to_exact(linear(x, weights.matrix, bias), wanted)
    assert_close_to_exact(linear_reference(x, weights.exact, bias), wanted)


def test_the_kernels_keep_the_shape_of_a_batch(memory: Memory) -> None:
    weights = packed("Q8_0", 5, 64)
    x = vectors(10, 64, torch.bfloat16).view(2, 5, 64)
    with interpreted():
        answer = linear(x, weights.matrix)
    assert answer.shape == (2, 5, 5)
    wanted = x.double() @ weights.exact.to(torch.bfloat16).double().T
    assert_close_to_exact(answer, wanted)


def test_no_token_has_no_answer() -> None:
    assert linear(vectors(0, 256), packed("Q6_K", 3, 256).matrix).shape == (0, 3)


def test_a_plain_weight_is_multiplied_as_it_is() -> None:
    x, weight = vectors(2, 3), torch.eye(3)
    assert torch.equal(linear(x, weight), x)
