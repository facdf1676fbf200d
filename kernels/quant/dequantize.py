"""Dequantise: a whole matrix as numbers, for products with so many rows that it pays."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit_for_counts, tensor, tl
from kernels.launch import launch
from kernels.quant.planes import QuantizedMatrix
from kernels.quant.quads import as_numbers, first_strips, load_quads, planes_of

ROWS = 4
QUADS = 32  # of a row: one for each thread of a warp


def dequantize(matrix: QuantizedMatrix, dtype: torch.dtype) -> Tensor:
    """[num_rows, num_columns] of `dtype`, in new memory."""
    if not takes_kernel("dequantize", matrix.planes["low"]):
        return dequantize_reference(matrix, dtype)
    out = torch.empty(matrix.num_rows, matrix.num_columns, dtype=dtype, device=matrix.device)
    launch_dequantize(matrix, None, out)
    return out


def launch_dequantize(matrix: QuantizedMatrix, row_ids: Tensor | None, out: Tensor) -> None:
    """Fill `out` [n, num_columns] with all rows, or with those of `row_ids` int64 [n]."""
    rows = ROWS if row_ids is None else 1
    launch(
        dequantize_kernel,
        (-(-out.shape[0] // rows), -(-matrix.num_columns // (32 * QUADS))),
        {
            "row_ids": matrix.planes["low"] if row_ids is None else row_ids,
            **planes_of(matrix),
            "out": out,
            "num_out": out.shape[0],
            "num_columns": matrix.num_columns,
        },
        {
            "FORMAT": matrix.type_name,
            "GROUP": matrix.form.group,
            "HAS_IDS": row_ids is not None,
            "ROWS": rows,
            "QUADS": QUADS,
        },
        num_warps=rows,
        counts=("num_out",),
    )


@jit_for_counts("num_out")
def dequantize_kernel(
    row_ids: tensor,
    low: tensor,
    high: tensor,
    scales: tensor,
    subscales: tensor,
    out: tensor,
    num_out: tensor,
    num_columns: tensor,
    FORMAT: constexpr,
    GROUP: constexpr,
    HAS_IDS: constexpr,
    ROWS: constexpr,
    QUADS: constexpr,
) -> None:
    """Grid: (rows of out / ROWS, quads of a row / QUADS)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.minimum(row, num_out - 1).to(tl.int64)
    source = rows[:, None]
    if HAS_IDS:
        source = tl.load(row_ids + rows)[:, None]
    quads = (tl.program_id(1) * QUADS + tl.arange(0, QUADS))[None, :]
    is_inside = quads < num_columns // 32
    quads = tl.minimum(quads, num_columns // 32 - 1)
    lo, hi, lo_scale, hi_scale, lo_offset, hi_offset = load_quads(
        low, high, scales, subscales, source, quads, is_inside, num_columns, FORMAT
    )
    strip = (rows[:, None] * (num_columns // 16) + first_strips(quads, GROUP))[:, :, None]
    place = out + strip * 16 + tl.arange(0, 16)[None, None, :]
    is_there = ((row < num_out)[:, None] & is_inside)[:, :, None]
    numbers = as_numbers(lo, lo_scale, lo_offset, FORMAT)
    tl.store(place, numbers.to(out.dtype.element_ty), mask=is_there)
    numbers = as_numbers(hi, hi_scale, hi_offset, FORMAT)
    tl.store(place + GROUP, numbers.to(out.dtype.element_ty), mask=is_there)


def dequantize_reference(matrix: QuantizedMatrix, dtype: torch.dtype = torch.float32) -> Tensor:
    """[num_rows, num_columns]; in float32 the same bits as `gguf.quants.dequantize`."""
    values = _DECODERS[matrix.type_name](matrix)
    return values.reshape(matrix.num_rows, matrix.num_columns).to(dtype)


def _q8_0(matrix: QuantizedMatrix) -> Tensor:
    quants = matrix.block_bytes("low").view(torch.int8)
    return _scales(matrix)[..., :1] * quants.float()


def _q4_0(matrix: QuantizedMatrix) -> Tensor:
    return _scales(matrix)[..., :1] * (_nibbles(matrix).float() - 8)


def _q4_1(matrix: QuantizedMatrix) -> Tensor:
    scales = _scales(matrix)
    return scales[..., :1] * _nibbles(matrix).float() + scales[..., 1:]


def _q5_0(matrix: QuantizedMatrix) -> Tensor:
    eight = torch.arange(8, dtype=torch.uint8, device=matrix.device)
    bits = (matrix.block_bytes("high").unsqueeze(-1) >> eight) & 1
    quants = _nibbles(matrix) | (bits.flatten(-2) << 4)
    return _scales(matrix)[..., :1] * (quants.float() - 16)


def _q4_k(matrix: QuantizedMatrix) -> Tensor:
    scales, minimums = _k_scales(matrix)
    quants = _nibbles(matrix).unflatten(-1, (8, 32)).float()
    return scales.unsqueeze(-1) * quants - minimums.unsqueeze(-1)


def _q5_k(matrix: QuantizedMatrix) -> Tensor:
    """Bit s of byte l of `high` is the fifth bit of column l of sub-block s."""
    scales, minimums = _k_scales(matrix)
    sub_block = torch.arange(8, dtype=torch.uint8, device=matrix.device).unsqueeze(-1)
    bits = (matrix.block_bytes("high").unsqueeze(-2) >> sub_block) & 1
    quants = _nibbles(matrix).unflatten(-1, (8, 32)) | (bits << 4)
    return scales.unsqueeze(-1) * quants.float() - minimums.unsqueeze(-1)


def _q6_k(matrix: QuantizedMatrix) -> Tensor:
    """A block is two halves of four quarters; two bits of `high` for each quarter of a half."""
    quarter = 2 * torch.arange(4, dtype=torch.uint8, device=matrix.device).unsqueeze(-1)
    high = matrix.block_bytes("high").unflatten(-1, (2, 1, 32))
    bits = ((high >> quarter) & 3).flatten(-3)
    quants = (_nibbles(matrix) | (bits << 4)).unflatten(-1, (16, 16)).float() - 32
    subscales = matrix.planes["subscales"].view(matrix.num_rows, matrix.num_blocks, 16).float()
    return (_scales(matrix) * subscales).unsqueeze(-1) * quants


def _scales(matrix: QuantizedMatrix) -> Tensor:
    """float32 [num_rows, num_blocks, 1, or 2 for Q4_1]."""
    return matrix.planes["scales"].view(matrix.num_rows, matrix.num_blocks, -1).float()


def _nibbles(matrix: QuantizedMatrix) -> Tensor:
    """uint8 [num_rows, num_blocks, block_columns], in the order of the columns."""
    low = matrix.block_bytes("low").unflatten(-1, (-1, matrix.form.group))
    return torch.stack((low & 15, low >> 4), dim=-2).flatten(-3)


def _k_scales(matrix: QuantizedMatrix) -> tuple[Tensor, Tensor]:
    """Scale and minimum of the eight sub-blocks, float32 [num_rows, num_blocks, 8] each.

    Six bits each: those of sub-blocks 0-3 are the low bits of bytes 0-3 (scales) and 4-7
    (minimums). For 4-7 the lower four are the nibbles of bytes 8-11, and the upper two the bits
    that were left in bytes 0-7.
    """
    head = matrix.block_bytes("scales")
    pair = head[..., :4].contiguous().view(torch.float16).float()
    first, second, third = head[..., 4:8], head[..., 8:12], head[..., 12:16]
    scales = torch.cat((first & 63, (third & 15) | ((first >> 6) << 4)), dim=-1)
    minimums = torch.cat((second & 63, (third >> 4) | ((second >> 6) << 4)), dim=-1)
    return pair[..., :1] * scales.float(), pair[..., 1:] * minimums.float()


_DECODERS: Mapping[str, Callable[[QuantizedMatrix], Tensor]] = {
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
