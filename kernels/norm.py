"""RMSNorm (Zhang and Sennrich, arXiv 1910.07467), with the residual that is added before it."""

import torch
from torch import Tensor


def rms_norm(
    x: Tensor,
    weight: Tensor,
    eps: float,
    *,
    residual: Tensor | None = None,
    adds_one: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """x [n, width], or [n, heads, width] for a norm of every head; weight [width] -> like x.

    With a residual [n, width]: (the norm of x + residual, x + residual). The sum is rounded to the
    type of x first, so that the norm sees what is kept. `adds_one`: weights are stored less 1.
    """
    check_norm(x, weight, residual)
    return rms_norm_reference(x, weight, eps, residual=residual, adds_one=adds_one)


def check_norm(x: Tensor, weight: Tensor, residual: Tensor | None) -> None:
    """Raises ValueError: the arguments do not go together."""
    if x.dim() not in (2, 3) or weight.shape != x.shape[-1:] or x.stride(-1) != 1:
        raise ValueError(
            f"A norm needs [n, width] or [n, heads, width] with adjacent numbers and as many"
            f" weights, but has {list(x.shape)} and {list(weight.shape)}."
        )
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise ValueError(
            f"A residual must be like x, {list(x.shape)} {x.dtype}, but it is"
            f" {list(residual.shape)} {residual.dtype}."
        )


def rms_norm_reference(
    x: Tensor,
    weight: Tensor,
    eps: float,
    *,
    residual: Tensor | None = None,
    adds_one: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    exact = torch.promote_types(x.dtype, torch.float32)
    total = x if residual is None else (x.to(exact) + residual.to(exact)).to(x.dtype)
    numbers = total.to(exact)
    inverse = torch.rsqrt(numbers.square().mean(dim=-1, keepdim=True) + eps)
    factors = weight.to(exact) + 1 if adds_one else weight.to(exact)
    normed = (numbers * inverse * factors).to(x.dtype)
    return normed if residual is None else (normed, total)
