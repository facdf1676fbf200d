"""Queries and keys are turned to their positions, and keys and values go into their blocks."""

import torch
from torch import Tensor

from kernels.paged_kv import PagedKV, quantize
from kernels.rotary_table import RotaryScaling, rotary_table

__all__ = ["RotaryScaling", "rotary_table", "rotate", "rotate_and_store"]


def rotate_and_store(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    slots: Tensor,
    table: Tensor | None,
    kv: PagedKV,
    *,
    is_interleaved: bool = False,
) -> Tensor:
    """queries [n, heads, dim], keys and values [n, kv_heads, dim], positions [n] int64, slots [n]
    int64 -> the turned queries.

    Slot s is place `s % 16` of block `s // 16`; below 0 nothing is written. `table` is that of
    `rotary_table`, and may cover fewer numbers than a head has: the others stay. None: nothing
    turns. `is_interleaved`: neighbours turn together, else the two halves of what turns.
    """
    check_rotary(queries, keys, values, positions, slots, table, kv)
    return rotate_and_store_reference(
        queries, keys, values, positions, slots, table, kv, is_interleaved=is_interleaved
    )


def check_rotary(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    slots: Tensor,
    table: Tensor | None,
    kv: PagedKV,
) -> None:
    """Raises ValueError: the arguments do not go together."""
    wanted = (queries.shape[0], kv.num_kv_heads, kv.head_dim)
    if tuple(keys.shape) != wanted or tuple(values.shape) != wanted:
        raise ValueError(
            f"Keys and values must be {list(wanted)}, but they are {list(keys.shape)} and"
            f" {list(values.shape)}."
        )
    if queries.dim() != 3 or queries.shape[2] != kv.head_dim:
        raise ValueError(f"Queries must be [n, heads, {kv.head_dim}], not {list(queries.shape)}.")
    if not queries.dtype == keys.dtype == values.dtype:
        raise ValueError("Queries, keys and values must be of one type.")
    if any(x.stride(2) != 1 for x in (queries, keys, values)):
        raise ValueError("The numbers of a head must lie beside one another.")
    for name, x in (("Positions", positions), ("Slots", slots)):
        if x.dtype != torch.int64 or x.shape != (queries.shape[0],) or not x.is_contiguous():
            raise ValueError(f"{name} must be [{queries.shape[0]}] int64, not {list(x.shape)}.")
    if table is not None and (
        table.dim() != 3
        or table.shape[1] != 2
        or 2 * table.shape[2] > kv.head_dim
        or not table.is_contiguous()
    ):
        raise ValueError(
            f"A rotary table is [positions, 2, half] with half of at most {kv.head_dim // 2},"
            f" not {list(table.shape)}."
        )


def rotate(x: Tensor, positions: Tensor, table: Tensor, *, is_interleaved: bool = False) -> Tensor:
    """x [n, heads, dim], turned, like x; computed in float32, or in float64 when x is."""
    exact = torch.promote_types(x.dtype, torch.float32)
    cosines, sines = table[positions].to(exact)[:, None].unbind(dim=2)
    half = table.shape[2]
    turning, rest = x[..., : 2 * half].to(exact), x[..., 2 * half :]
    if is_interleaved:
        first, second = turning[..., 0::2], turning[..., 1::2]
    else:
        first, second = turning[..., :half], turning[..., half:]
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    joined = (
        torch.stack(turned, dim=-1).flatten(-2) if is_interleaved else torch.cat(turned, dim=-1)
    )
    return torch.cat((joined.to(x.dtype), rest), dim=-1)


def rotate_and_store_reference(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    slots: Tensor,
    table: Tensor | None,
    kv: PagedKV,
    *,
    is_interleaved: bool = False,
) -> Tensor:
    if table is not None:
        queries = rotate(queries, positions, table, is_interleaved=is_interleaved)
        # What is quantised is not rounded to the type of the model before.
        exact = keys.float() if kv.is_quantized else keys
        keys = rotate(exact, positions, table, is_interleaved=is_interleaved)
    kept = slots >= 0
    _store(kv.keys, kv.key_scales, keys, slots, kept)
    _store(kv.values, kv.value_scales, values, slots, kept)
    return queries


def _store(pool: Tensor, scales: Tensor | None, x: Tensor, slots: Tensor, kept: Tensor) -> None:
    rows = pool.view(-1, *pool.shape[2:])
    if scales is not None:
        x, new_scales = quantize(x)
        scales.view(-1, scales.shape[2])[slots[kept]] = new_scales[kept]
    rows[slots[kept]] = x[kept].to(pool.dtype)
