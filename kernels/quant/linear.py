"""A linear layer over a quantised or a plain weight: the path that suits the number of rows."""

import torch
from torch import Tensor

from kernels.quant.dequantize import dequantize_reference
from kernels.quant.planes import QuantizedMatrix


def linear_reference(
    x: Tensor, weight: QuantizedMatrix | Tensor, bias: Tensor | None = None
) -> Tensor:
    """x [..., num_columns], weight [num_rows, num_columns] -> [..., num_rows], like x."""
    if isinstance(weight, QuantizedMatrix):
        weight = dequantize_reference(weight, x.dtype)
    return torch.nn.functional.linear(x, weight, bias)


def linear(x: Tensor, weight: QuantizedMatrix | Tensor, bias: Tensor | None = None) -> Tensor:
    """x [..., num_columns], weight [num_rows, num_columns] -> [..., num_rows], like x."""
    return linear_reference(x, weight, bias)
