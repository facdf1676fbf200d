"""Gated activations."""

import math

import pytest
import torch

from kernels.activation import Activation, gated, gated_reference
from kernels.choice import interpreted
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory

# The interpreter computes exp(1000), where a card has infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp")


def exact_activation(x: float, kind: Activation) -> float:
    match kind:
        case "silu":
            return x / (1 + math.exp(-x))
        case "gelu":
            return x * (1 + math.erf(x / math.sqrt(2))) / 2
        case "gelu_tanh":
            return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])
@pytest.mark.parametrize("kind", ["silu", "gelu", "gelu_tanh"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["f32", "f16", "bf16"]
)
def test_gates_are_activated_and_multiplied(
    memory: Memory, is_kernel: bool, kind: Activation, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(3)
    gate_up = (torch.randn(3, 246, generator=generator) * 4).to(dtype)
    # Far out, where an exponent could overflow.
    gate_up[0, :2] = torch.tensor([-80.0, 80.0]).to(dtype)
    gate, up = gate_up.double().chunk(2, dim=1)
    exact = gate.clone().apply_(lambda x: exact_activation(x, kind)) * up
    if is_kernel:
        with interpreted():
            answer = gated(gate_up, kind)
    else:
        answer = gated_reference(gate_up, kind)
    assert_close_to_exact(answer, exact)


def test_a_width_of_more_than_one_stretch_is_done_whole(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernels.activation.COLUMNS", 32)
    gate_up = torch.randn(2, 140, generator=torch.Generator().manual_seed(4))
    with interpreted():
        answer = gated(gate_up, "silu")
    assert_close_to_exact(answer, gated_reference(gate_up.double(), "silu"))


def test_what_is_no_activation_is_named() -> None:
    with pytest.raises(ValueError, match="no activation called 'relu'"):
        gated(torch.zeros(1, 4), "relu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be \\[n, 2 \\* width\\]"):
        gated(torch.zeros(1, 5), "silu")
