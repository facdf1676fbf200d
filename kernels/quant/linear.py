"""A linear layer over a quantised or a plain weight: the path that suits the number of tokens."""

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.quant.activations import MAX_TOKENS
from kernels.quant.dequantize import dequantize, dequantize_reference
from kernels.quant.matmul import matmul
from kernels.quant.matvec import matvec
from kernels.quant.planes import QuantizedMatrix

MATMUL_TOKENS = 512
"""Above, one pass that dequantises costs less than dequantising anew for every tile of tokens."""


def linear(
    x: Tensor,
    weight: QuantizedMatrix | Tensor,
    bias: Tensor | None = None,
    *,
    is_exact: bool = False,
) -> Tensor:
    """x [..., num_columns], weight [num_rows, num_columns] -> [..., num_rows], like x.

    On a card up to eight tokens are rounded to int8 first, unless `is_exact`.
    """
    if isinstance(weight, Tensor):
        return torch.nn.functional.linear(x, weight, bias)
    tokens = x.reshape(-1, x.shape[-1])
    num_tokens = len(tokens)
    if num_tokens == 0 or not takes_kernel("linear", x):
        return linear_reference(x, weight, bias)
    if num_tokens <= MAX_TOKENS:
        made = matvec(tokens, weight, bias, is_exact=is_exact)
    elif num_tokens <= MATMUL_TOKENS and x.dtype != torch.float32:
        made = matmul(tokens, weight, bias)
    else:
        made = torch.nn.functional.linear(tokens, dequantize(weight, x.dtype), bias)
    return made.view(*x.shape[:-1], weight.num_rows)


def linear_reference(
    x: Tensor, weight: QuantizedMatrix | Tensor, bias: Tensor | None = None
) -> Tensor:
    """As `linear` with `is_exact`, in plain torch."""
    if isinstance(weight, QuantizedMatrix):
        weight = dequantize_reference(weight, x.dtype)
    return torch.nn.functional.linear(x, weight, bias)
