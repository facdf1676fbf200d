"""The gated activations of a feed-forward layer (Shazeer, arXiv 2002.05202)."""

from typing import Literal, get_args

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit, tensor, tl
from kernels.launch import launch

Activation = Literal["silu", "gelu_tanh", "gelu"]

COLUMNS = 1024


def gated(gate_up: Tensor, kind: Activation) -> Tensor:
    """gate_up [n, 2 * width], the gates first -> activation(gate) * up [n, width]."""
    if kind not in get_args(Activation):
        raise ValueError(f"There is no activation called {kind!r}.")
    if gate_up.dim() != 2 or gate_up.shape[1] % 2 or gate_up.stride(1) != 1:
        raise ValueError(
            f"Gates and ups must be [n, 2 * width] with adjacent numbers, but they are"
            f" {list(gate_up.shape)}."
        )
    run = _gated if takes_kernel("gated", gate_up) else gated_reference
    return run(gate_up, kind)


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


def _gated(gate_up: Tensor, kind: Activation) -> Tensor:
    num_rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    result = torch.empty((num_rows, width), dtype=gate_up.dtype, device=gate_up.device)
    launch(
        gated_kernel,
        (num_rows, -(-width // COLUMNS)),
        {"gate_up": gate_up, "result": result, "row_stride": gate_up.stride(0), "width": width},
        {"KIND": kind, "COLUMNS": COLUMNS},
    )
    return result


@jit
def gated_kernel(
    gate_up: tensor,
    result: tensor,
    row_stride: tensor,
    width: tensor,
    KIND: constexpr,
    COLUMNS: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_held = column < width
    source = gate_up + row * row_stride + column
    gate = tl.load(source, mask=is_held, other=0.0).to(tl.float32)
    up = tl.load(source + width, mask=is_held, other=0.0).to(tl.float32)
    if KIND == "silu":
        active = gate * tl.sigmoid(gate)
    elif KIND == "gelu_tanh":
        # (1 + tanh(z)) / 2 is the sigmoid of 2 z; z = sqrt(2 / pi) (x + 0.044715 x^3)
        active = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))
    else:
        active = 0.5 * gate * (1.0 + tl.erf(0.7071067811865476 * gate))
    tl.store(result + row * width + column, (active * up).to(result.dtype.element_ty), mask=is_held)
