"""A quantised matrix times 9 to 512 vectors: weights become numbers beside the tensor cores.

Each program makes a tile of numbers of its rows in registers and multiplies it at once, so weights
cross the memory packed. The two strips of a quad are two products: no column is moved for them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit_for_counts, tensor, tl
from kernels.launch import launch
from kernels.quant.dequantize import dequantize_reference
from kernels.quant.planes import QuantizedMatrix
from kernels.quant.quads import as_numbers, first_strips, load_quads, planes_of

COUNTS = ("has_bias", "num_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What one program computes: [tokens, rows], `quads` of a row at a time."""

    tokens: int
    rows: int
    quads: int
    num_warps: int
    num_stages: int


TILES = (
    Tile(tokens=16, rows=64, quads=4, num_warps=4, num_stages=2),
    Tile(tokens=64, rows=128, quads=2, num_warps=4, num_stages=2),
    Tile(tokens=128, rows=128, quads=2, num_warps=8, num_stages=2),
)


def tile_for(num_tokens: int) -> Tile:
    """The smallest that takes all tokens, else the largest."""
    return next((tile for tile in TILES if tile.tokens >= num_tokens), TILES[-1])


def matmul(x: Tensor, weight: QuantizedMatrix, bias: Tensor | None = None) -> Tensor:
    """x [num_tokens, num_columns] -> [num_tokens, num_rows], like x. Weights are rounded to the
    dtype of x, sums are float32. bias [num_rows]."""
    num_tokens, num_columns = x.shape
    if num_columns != weight.num_columns:
        raise ValueError(
            f"Vectors of {weight.num_columns:,} numbers are needed, not of {num_columns:,}."
        )
    if not takes_kernel("matmul", x):
        return matmul_reference(x, weight, bias)
    out = torch.empty(num_tokens, weight.num_rows, dtype=x.dtype, device=x.device)
    tile = tile_for(num_tokens)
    launch(
        matmul_kernel,
        (-(-num_tokens // tile.tokens), -(-weight.num_rows // tile.rows)),
        {
            "x": x.contiguous(),
            **planes_of(weight),
            "bias": out if bias is None else bias,
            "out": out,
            "has_bias": int(bias is not None),
            "num_tokens": num_tokens,
            "num_rows": weight.num_rows,
            "num_columns": weight.num_columns,
        },
        {
            "FORMAT": weight.type_name,
            "GROUP": weight.form.group,
            "TOKENS": tile.tokens,
            "ROWS": tile.rows,
            "QUADS": tile.quads,
        },
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        counts=COUNTS,
    )
    return out


def matmul_reference(x: Tensor, weight: QuantizedMatrix, bias: Tensor | None = None) -> Tensor:
    """As `matmul`, in plain torch, with sums in float32."""
    numbers = dequantize_reference(weight, x.dtype).float()
    product = torch.nn.functional.linear(x.float(), numbers, None if bias is None else bias.float())
    return product.to(x.dtype)


@jit_for_counts(*COUNTS)
def matmul_kernel(
    x: tensor,
    low: tensor,
    high: tensor,
    scales: tensor,
    subscales: tensor,
    bias: tensor,
    out: tensor,
    has_bias: tensor,
    num_tokens: tensor,
    num_rows: tensor,
    num_columns: tensor,
    FORMAT: constexpr,
    GROUP: constexpr,
    TOKENS: constexpr,
    ROWS: constexpr,
    QUADS: constexpr,
) -> None:
    """Grid: (tokens / TOKENS, rows / ROWS). Loads past an end read its last place; there scales
    are zero, and nothing is stored.

    Weights come first in the product: so they go from where they became numbers into the tensor
    cores, without a way through shared memory before Hopper.
    """
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    rows = tl.minimum(row, num_rows - 1).to(tl.int64)[:, None]
    x_columns = x + tl.minimum(token, num_tokens - 1).to(tl.int64)[None, :] * num_columns
    num_quads = num_columns // 32
    column = tl.arange(0, QUADS * 16)
    total = tl.zeros([ROWS, TOKENS], tl.float32)
    for start in tl.range(0, num_quads, QUADS):
        quads = start + tl.arange(0, QUADS)
        is_inside = (quads < num_quads)[None, :]
        quads = tl.minimum(quads, num_quads - 1)[None, :]
        lo, hi, lo_scale, hi_scale, lo_offset, hi_offset = load_quads(
            low, high, scales, subscales, rows, quads, is_inside, num_columns, FORMAT
        )
        strip = first_strips(tl.minimum(start + column // 16, num_quads - 1), GROUP)
        numbers = x_columns + (strip * 16 + column % 16)[:, None]
        x_lo = tl.load(numbers)
        x_hi = tl.load(numbers + GROUP)
        weights = as_numbers(lo, lo_scale, lo_offset, FORMAT).to(x_lo.dtype)
        weights = tl.reshape(weights, [ROWS, QUADS * 16])
        total = tl.dot(weights, x_lo, total, input_precision="ieee")
        weights = as_numbers(hi, hi_scale, hi_offset, FORMAT).to(x_lo.dtype)
        weights = tl.reshape(weights, [ROWS, QUADS * 16])
        total = tl.dot(weights, x_hi, total, input_precision="ieee")
    is_biased = (row < num_rows) & (has_bias != 0)
    total += tl.load(bias + row, mask=is_biased, other=0.0).to(tl.float32)[:, None]
    place = out + token.to(tl.int64)[None, :] * num_rows + row[:, None]
    is_there = (token < num_tokens)[None, :] & (row < num_rows)[:, None]
    tl.store(place, total.to(out.dtype.element_ty), mask=is_there)
