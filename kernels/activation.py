"""The gated activations of a feed-forward layer (Shazeer, arXiv 2002.05202)."""

from typing import Literal, get_args

import torch
from torch import Tensor

Activation = Literal["silu", "gelu_tanh", "gelu"]


def gated(gate_up: Tensor, kind: Activation) -> Tensor:
    """gate_up [n, 2 * width], the gates first -> activation(gate) * up [n, width]."""
    if kind not in get_args(Activation):
        raise ValueError(f"There is no activation called {kind!r}.")
    if gate_up.dim() != 2 or gate_up.shape[1] % 2 or gate_up.stride(1) != 1:
        raise ValueError(
            f"Gates and ups must be [n, 2 * width] with adjacent numbers, but they are"
            f" {list(gate_up.shape)}."
        )
    return gated_reference(gate_up, kind)


def gated_reference(gate_up: Tensor, kind: Activation) -> Tensor:
    exact = torch.promote_types(gate_up.dtype, torch.float32)
    gate, up = gate_up.to(exact).chunk(2, dim=-1)
    match kind:
        case "silu":
            active = torch.nn.functional.silu(gate)
        case "gelu_tanh":
            active = torch.nn.functional.gelu(gate, approximate="tanh")
        case "gelu":
            active = torch.nn.functional.gelu(gate)
    return (active * up).to(gate_up.dtype)
