"""RMSNorm (Zhang and Sennrich, arXiv 1910.07467), with the residual that is added before it."""

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.configs import norm_tile
from kernels.language import constexpr, jit_for_counts, tensor, tl
from kernels.launch import launch


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
    run = _norm if takes_kernel("rms_norm", x) else rms_norm_reference
    return run(x, weight, eps, residual=residual, adds_one=adds_one)


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


def _norm(
    x: Tensor, weight: Tensor, eps: float, *, residual: Tensor | None, adds_one: bool
) -> Tensor | tuple[Tensor, Tensor]:
    width = x.shape[-1]
    num_heads = x.shape[1] if x.dim() == 3 else 1
    num_rows = x.shape[0] * num_heads
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    has_residual = residual is not None
    residual = x if residual is None else residual.contiguous()
    total = torch.empty_like(result) if has_residual else result
    tile = norm_tile(width)
    launch(
        norm_kernel,
        (-(-num_rows // tile.rows),),
        {
            "x": x,
            "residual": residual,
            "weight": weight,
            "result": result,
            "total": total,
            "eps": float(eps),
            "num_rows": num_rows,
            "row_stride": x.stride(0),
            "head_stride": x.stride(1) if x.dim() == 3 else 0,
        },
        {
            "HEADS": num_heads,
            "NUM_COLUMNS": width,
            "ROWS": tile.rows,
            "COLUMNS": tile.columns,
            "HAS_RESIDUAL": has_residual,
            "ADDS_ONE": adds_one,
        },
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        counts=("num_rows",),
    )
    return (result, total) if has_residual else result


@jit_for_counts("num_rows")
def norm_kernel(
    x: tensor,
    residual: tensor,
    weight: tensor,
    result: tensor,
    total: tensor,
    eps: tensor,
    num_rows: tensor,
    row_stride: tensor,
    head_stride: tensor,
    HEADS: constexpr,
    NUM_COLUMNS: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    HAS_RESIDUAL: constexpr,
    ADDS_ONE: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    is_held = (row[:, None] < num_rows) & (column[None, :] < NUM_COLUMNS)
    source = (row // HEADS) * row_stride + (row % HEADS) * head_stride
    place = row[:, None] * NUM_COLUMNS + column[None, :]
    numbers = tl.load(x + source[:, None] + column[None, :], mask=is_held, other=0.0)
    numbers = numbers.to(tl.float32)
    if HAS_RESIDUAL:
        numbers += tl.load(residual + place, mask=is_held, other=0.0).to(tl.float32)
        rounded = numbers.to(total.dtype.element_ty)
        tl.store(total + place, rounded, mask=is_held)
        numbers = rounded.to(tl.float32)
    mean = tl.sum(numbers * numbers, 1) / NUM_COLUMNS
    inverse = 1.0 / tl.sqrt(mean + eps)
    factor = tl.load(weight + column, mask=column < NUM_COLUMNS, other=0.0).to(tl.float32)
    if ADDS_ONE:
        factor += 1.0
    normed = numbers * inverse[:, None] * factor[None, :]
    tl.store(result + place, normed.to(result.dtype.element_ty), mask=is_held)
