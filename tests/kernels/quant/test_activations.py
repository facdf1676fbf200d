"""Activations as int8."""

import pytest
import torch

from kernels.choice import interpreted
from kernels.quant.activations import (
    dequantize_activations,
    quantize_activations,
    quantize_activations_reference,
)
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import vectors


@pytest.mark.parametrize("num_tokens", [1, 3, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_kernel_makes_the_same_whole_numbers(
    memory: Memory, num_tokens: int, dtype: torch.dtype
) -> None:
    x = vectors(num_tokens, 1056, dtype)
    wanted = quantize_activations_reference(x)
    with interpreted():
        made = quantize_activations(x)
    assert torch.equal(made.quants, wanted.quants)
    assert torch.equal(made.sums, wanted.sums)
    torch.testing.assert_close(made.scales, wanted.scales, rtol=1e-6, atol=0)


def test_no_number_moves_by_more_than_half_a_step() -> None:
    x = vectors(4, 320)
    moved = (dequantize_activations(quantize_activations_reference(x)) - x).abs()
    step = x.view(4, 10, 32).abs().amax(dim=-1) / 127
    assert (moved.view(4, 10, 32).amax(dim=-1) <= step * 0.5001).all()


def test_blocks_of_nothing_stay_nothing(memory: Memory) -> None:
    x = torch.zeros(2, 64)
    x[1, 40] = -3.0
    with interpreted():
        made = quantize_activations(x)
    assert torch.equal(dequantize_activations(made), x)


def test_what_is_over_is_zero(memory: Memory) -> None:
    """Slots beyond the tokens are multiplied, too."""
    with interpreted():
        made = quantize_activations(vectors(5, 32))
    assert made.num_slots == 8
    assert not made.quants[:, 5:].any()
    assert not made.scales[:, 5:].any()


@pytest.mark.parametrize(("num_tokens", "num_columns"), [(0, 32), (9, 32), (1, 40)])
def test_other_shapes_are_refused(num_tokens: int, num_columns: int) -> None:
    with pytest.raises(ValueError, match="whole blocks of 32 columns"):
        quantize_activations(vectors(num_tokens, num_columns))
