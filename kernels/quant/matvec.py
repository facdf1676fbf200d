"""A quantised matrix times up to eight vectors: what a decode step spends its time on.

Whole numbers by dp4a, scales outside the sum. Every thread reads 16 bytes of weights at a time and
nobody waits for another; one warp takes 32 quads of one row. Instructions per weight: tests of the
compiled kernels hold them below what a card can issue while the bytes come.
"""

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit_for_counts, tensor, tl
from kernels.launch import launch
from kernels.quant.activations import (
    MAX_TOKENS,
    QuantizedActivations,
    dequantize_activations,
    quantize_activations,
    quantize_activations_reference,
)
from kernels.quant.dequantize import dequantize_reference
from kernels.quant.dot import dp4a
from kernels.quant.planes import QuantizedMatrix
from kernels.quant.quads import as_numbers, first_strips, load_quads, no_sums, planes_of

QUADS = 32  # of a row in a step: one for each thread of a warp
EXACT_ROWS = 4
EXACT_TOKENS = 2
COUNTS = ("has_bias", "num_tokens")


def matvec(
    x: Tensor | QuantizedActivations,
    weight: QuantizedMatrix,
    bias: Tensor | None = None,
    *,
    dtype: torch.dtype | None = None,
    is_exact: bool = False,
) -> Tensor:
    """x [num_tokens <= 8, num_columns] -> [num_tokens, num_rows] of `dtype`, else like x.

    x is rounded to int8 unless `is_exact`; one that was quantised before serves several weights,
    and needs a `dtype`. bias [num_rows].
    """
    if isinstance(x, QuantizedActivations):
        num_tokens, num_columns = x.num_tokens, 32 * x.scales.shape[0]
        held = x.quants
    else:
        num_tokens, num_columns = x.shape
        dtype = dtype or x.dtype
        held = x
    if dtype is None or is_exact and isinstance(x, QuantizedActivations):
        raise ValueError("Quantised activations need the dtype of the result, and are not exact.")
    if not 1 <= num_tokens <= MAX_TOKENS or num_columns != weight.num_columns:
        raise ValueError(
            f"Between one and {MAX_TOKENS} vectors of {weight.num_columns:,} numbers are needed,"
            f" not {num_tokens} of {num_columns:,}."
        )
    if not takes_kernel("exact_matvec" if is_exact else "matvec", held):
        return matvec_reference(x, weight, bias, dtype=dtype, is_exact=is_exact)
    out = torch.empty(num_tokens, weight.num_rows, dtype=dtype, device=held.device)
    if isinstance(x, Tensor) and is_exact:
        _launch_exact(x.contiguous(), weight, bias, out)
    else:
        made = x if isinstance(x, QuantizedActivations) else quantize_activations(x)
        _launch(made, weight, bias, out)
    return out


def rows_of_a_program(num_slots: int) -> int:
    """Two rows for every warp, as long as the registers last."""
    return 8 if num_slots <= 4 else 4


def _launch(
    x: QuantizedActivations, weight: QuantizedMatrix, bias: Tensor | None, out: Tensor
) -> None:
    rows = rows_of_a_program(x.num_slots)
    launch(
        matvec_kernel,
        (-(-weight.num_rows // rows),),
        {
            "x_quants": x.quants.view(torch.int32),
            "x_scales": x.scales,
            "x_sums": x.sums,
            **planes_of(weight),
            "bias": out if bias is None else bias,
            "out": out,
            "has_bias": int(bias is not None),
            "num_tokens": x.num_tokens,
            "num_rows": weight.num_rows,
            "num_columns": weight.num_columns,
        },
        {
            "FORMAT": weight.type_name,
            "GROUP": weight.form.group,
            "SLOTS": x.num_slots,
            "ROWS": rows,
            "QUADS": QUADS,
        },
        counts=COUNTS,
    )


def _launch_exact(x: Tensor, weight: QuantizedMatrix, bias: Tensor | None, out: Tensor) -> None:
    num_tokens = x.shape[0]
    launch(
        exact_matvec_kernel,
        (-(-weight.num_rows // EXACT_ROWS), -(-num_tokens // EXACT_TOKENS)),
        {
            "x": x,
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
            "TOKENS": EXACT_TOKENS,
            "ROWS": EXACT_ROWS,
            "QUADS": QUADS,
        },
        counts=COUNTS,
    )


def matvec_reference(
    x: Tensor | QuantizedActivations,
    weight: QuantizedMatrix,
    bias: Tensor | None = None,
    *,
    dtype: torch.dtype,
    is_exact: bool = False,
) -> Tensor:
    """As `matvec`, in plain torch and float32."""
    if isinstance(x, QuantizedActivations):
        numbers = dequantize_activations(x)
    elif is_exact:
        numbers = x.float()
    else:
        numbers = dequantize_activations(quantize_activations_reference(x))
    product = torch.nn.functional.linear(
        numbers, dequantize_reference(weight), None if bias is None else bias.float()
    )
    return product.to(dtype)


@jit_for_counts(*COUNTS)
def matvec_kernel(
    x_quants: tensor,
    x_scales: tensor,
    x_sums: tensor,
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
    SLOTS: constexpr,
    ROWS: constexpr,
    QUADS: constexpr,
) -> None:
    """Grid: (rows / ROWS). x_quants int32 [strips, SLOTS, 4]. Loads past an end read its last
    place, and there the scale is zero."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.minimum(row, num_rows - 1).to(tl.int64)[:, None]
    num_quads = num_columns // 32
    word = tl.arange(0, 4)[None, None, :]
    behind: constexpr = GROUP // 16
    # Loads of x have the shape of the weights, so that each thread reads what it needs itself.
    spread = (row * 0)[:, None]
    totals = no_sums(SLOTS, ROWS, QUADS)
    for start in tl.range(0, num_quads, QUADS):
        quads = (start + tl.arange(0, QUADS))[None, :]
        is_inside = quads < num_quads
        quads = tl.minimum(quads, num_quads - 1)
        lo, hi, lo_scale, hi_scale, lo_offset, hi_offset = load_quads(
            low, high, scales, subscales, rows, quads, is_inside, num_columns, FORMAT
        )
        strip = first_strips(quads, GROUP) + spread
        quants = x_quants + strip[:, :, None] * (4 * SLOTS) + word
        sums = x_sums + strip * SLOTS
        x_scale = x_scales + strip // 2 * SLOTS
        added = totals[:0]
        for slot in tl.static_range(SLOTS):
            x_lo = tl.load(quants + slot * 4)
            x_hi = tl.load(quants + (behind * SLOTS + slot) * 4)
            none = tl.zeros([ROWS, QUADS, 4], tl.int32)
            if GROUP == 16:  # both strips have one scale, here and there
                dots = tl.sum(dp4a(hi, x_hi, dp4a(lo, x_lo, none)), 2).to(tl.float32)
                part = lo_scale * dots
                if FORMAT != "Q8_0":
                    part -= lo_offset * (tl.load(sums + slot) + tl.load(sums + SLOTS + slot))
                total = totals[slot] + tl.load(x_scale + slot) * part
            else:
                dots = tl.sum(dp4a(lo, x_lo, none), 2).to(tl.float32)
                part = lo_scale * dots - lo_offset * tl.load(sums + slot)
                total = totals[slot] + tl.load(x_scale + slot) * part
                dots = tl.sum(dp4a(hi, x_hi, none), 2).to(tl.float32)
                part = hi_scale * dots - hi_offset * tl.load(sums + behind * SLOTS + slot)
                total += tl.load(x_scale + behind // 2 * SLOTS + slot) * part
            added = added + (total,)
        totals = added
    is_biased = (row < num_rows) & (has_bias != 0)
    added_bias = tl.load(bias + row, mask=is_biased, other=0.0).to(tl.float32)
    for slot in tl.static_range(SLOTS):
        y = tl.sum(totals[slot], 1) + added_bias
        is_there = (row < num_rows) & (slot < num_tokens)
        tl.store(out + slot * num_rows + row, y.to(out.dtype.element_ty), mask=is_there)


@jit_for_counts(*COUNTS)
def exact_matvec_kernel(
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
    """Grid: (rows / ROWS, tokens / TOKENS). x [tokens, num_columns] as it is."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    rows = tl.minimum(row, num_rows - 1).to(tl.int64)[:, None]
    num_quads = num_columns // 32
    column = tl.arange(0, 16)[None, None, :]
    spread = (row * 0)[:, None]
    first = tl.program_id(1) * TOKENS
    totals = no_sums(TOKENS, ROWS, QUADS)
    for start in tl.range(0, num_quads, QUADS):
        quads = (start + tl.arange(0, QUADS))[None, :]
        is_inside = quads < num_quads
        quads = tl.minimum(quads, num_quads - 1)
        lo, hi, lo_scale, hi_scale, lo_offset, hi_offset = load_quads(
            low, high, scales, subscales, rows, quads, is_inside, num_columns, FORMAT
        )
        lo_weights = as_numbers(lo, lo_scale, lo_offset, FORMAT)
        hi_weights = as_numbers(hi, hi_scale, hi_offset, FORMAT)
        place = (first_strips(quads, GROUP) + spread)[:, :, None] * 16 + column
        added = totals[:0]
        for t in tl.static_range(TOKENS):
            # Past the last token its numbers are read again, and nothing is stored.
            numbers = x + tl.minimum(first + t, num_tokens - 1) * num_columns + place
            products = lo_weights * tl.load(numbers).to(tl.float32)
            products += hi_weights * tl.load(numbers + GROUP).to(tl.float32)
            added = added + (totals[t] + tl.sum(products, 2),)
        totals = added
    is_biased = (row < num_rows) & (has_bias != 0)
    added_bias = tl.load(bias + row, mask=is_biased, other=0.0).to(tl.float32)
    for t in tl.static_range(TOKENS):
        y = tl.sum(totals[t], 1) + added_bias
        is_there = (row < num_rows) & (first + t < num_tokens)
        tl.store(out + (first + t) * num_rows + row, y.to(out.dtype.element_ty), mask=is_there)
