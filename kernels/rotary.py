"""Queries and keys are turned to their positions, and keys and values go into their blocks."""

from typing import Any

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit, power_of_two, tensor, tl
from kernels.launch import launch
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
    run = _rotate if takes_kernel("rotate_and_store", queries) else rotate_and_store_reference
    return run(queries, keys, values, positions, slots, table, kv, is_interleaved=is_interleaved)


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
        # What is kept is rounded once, to the type of the pool.
        exact = keys.to(torch.promote_types(keys.dtype, torch.float32))
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


def _rotate(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    positions: Tensor,
    slots: Tensor,
    table: Tensor | None,
    kv: PagedKV,
    *,
    is_interleaved: bool,
) -> Tensor:
    num_tokens, num_heads, head_dim = queries.shape
    result = torch.empty_like(queries, memory_format=torch.contiguous_format)
    launch(
        rotate_kernel,
        (num_tokens, num_heads + 2 * kv.num_kv_heads),
        {
            "queries": queries,
            "keys": keys,
            "values": values,
            "positions": positions,
            "slots": slots,
            "table": positions if table is None else table,
            "result": result,
            "kept_keys": kv.keys,
            "kept_values": kv.values,
            "key_scales": kv.keys if kv.key_scales is None else kv.key_scales,
            "value_scales": kv.values if kv.value_scales is None else kv.value_scales,
            "query_stride": queries.stride(0),
            "query_head_stride": queries.stride(1),
            "key_stride": keys.stride(0),
            "key_head_stride": keys.stride(1),
            "value_stride": values.stride(0),
            "value_head_stride": values.stride(1),
        },
        {
            "HEADS": num_heads,
            "KV_HEADS": kv.num_kv_heads,
            "HEAD_DIM": head_dim,
            "WIDTH": power_of_two(head_dim),
            "HALF": 0 if table is None else table.shape[2],
            "IS_INTERLEAVED": is_interleaved,
            "IS_QUANTIZED": kv.is_quantized,
        },
        num_warps=1 if head_dim <= 128 else 2,
    )
    return result


@jit
def rotate_kernel(
    queries: tensor,
    keys: tensor,
    values: tensor,
    positions: tensor,
    slots: tensor,
    table: tensor,
    result: tensor,
    kept_keys: tensor,
    kept_values: tensor,
    key_scales: tensor,
    value_scales: tensor,
    query_stride: tensor,
    query_head_stride: tensor,
    key_stride: tensor,
    key_head_stride: tensor,
    value_stride: tensor,
    value_head_stride: tensor,
    HEADS: constexpr,
    KV_HEADS: constexpr,
    HEAD_DIM: constexpr,
    WIDTH: constexpr,
    HALF: constexpr,
    IS_INTERLEAVED: constexpr,
    IS_QUANTIZED: constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    number = tl.arange(0, WIDTH)
    is_held = number < HEAD_DIM
    position = tl.load(positions + token)
    slot = tl.load(slots + token)
    if head < HEADS:
        source = queries + token * query_stride + head * query_head_stride
        turned = _turned(source, table, position, number, HEAD_DIM, HALF, IS_INTERLEAVED)
        target = result + (token * HEADS + head) * HEAD_DIM + number
        tl.store(target, turned.to(result.dtype.element_ty), mask=is_held)
    elif slot >= 0:
        if head < HEADS + KV_HEADS:
            kv_head = head - HEADS
            source = keys + token * key_stride + kv_head * key_head_stride
            turned = _turned(source, table, position, number, HEAD_DIM, HALF, IS_INTERLEAVED)
            lane = slot * KV_HEADS + kv_head
            _keep(turned, kept_keys, key_scales, lane, number, HEAD_DIM, IS_QUANTIZED)
        else:
            kv_head = head - HEADS - KV_HEADS
            source = values + token * value_stride + kv_head * value_head_stride
            value = tl.load(source + number, mask=is_held, other=0.0).to(tl.float32)
            lane = slot * KV_HEADS + kv_head
            _keep(value, kept_values, value_scales, lane, number, HEAD_DIM, IS_QUANTIZED)


@jit
def _turned(
    source: tensor,
    table: tensor,
    position: tensor,
    number: tensor,
    HEAD_DIM: constexpr,
    HALF: constexpr,
    IS_INTERLEAVED: constexpr,
) -> Any:
    """One head in float32; what lies beyond its end is 0."""
    x = tl.load(source + number, mask=number < HEAD_DIM, other=0.0).to(tl.float32)
    if HALF > 0:
        turns = number < 2 * HALF
        if IS_INTERLEAVED:
            partner = number ^ 1
            angle = number // 2
            is_first = number % 2 == 0
        else:
            is_first = number < HALF
            angle = tl.where(is_first, number, number - HALF)
            partner = tl.where(is_first, number + HALF, number - HALF)
        other = tl.load(source + partner, mask=turns, other=0.0).to(tl.float32)
        row = table + position * (2 * HALF) + angle
        cosine = tl.load(row, mask=turns, other=1.0)
        sine = tl.load(row + HALF, mask=turns, other=0.0)
        x = x * cosine + tl.where(is_first, -other, other) * sine
    return x


@jit
def _keep(
    x: tensor,
    pool: tensor,
    scales: tensor,
    lane: tensor,
    number: tensor,
    HEAD_DIM: constexpr,
    IS_QUANTIZED: constexpr,
) -> None:
    """One head of one token into the pool; `lane`: its place, in heads from the beginning."""
    target = pool + lane * HEAD_DIM + number
    if IS_QUANTIZED:
        # Rounded as `quantize` does; the fast division of a card could go to the other step.
        scale = tl.div_rn(tl.max(tl.abs(x), 0), 127.0)
        steps = tl.div_rn(x, tl.where(scale > 0, scale, 1.0))
        rounded = tl.minimum(tl.maximum(tl.floor(steps + 0.5), -127.0), 127.0)
        tl.store(scales + lane, scale)
        tl.store(target, rounded.to(tl.int8), mask=number < HEAD_DIM)
    else:
        tl.store(target, x.to(pool.dtype.element_ty), mask=number < HEAD_DIM)
