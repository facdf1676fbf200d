"""Attention of one new token per sequence over its paged keys and values.

The heads that share a KV head are the rows of one tile, so that keys and values are read once and
tensor cores have something to do. The KV of a sequence is split among programs (split-KV, as in
Dao and others, "Flash-Decoding", 2023), each of which keeps a softmax of its own (Milakov and
Gimelshein, arXiv 1805.02867); a second kernel joins them.
"""

import torch
from torch import Tensor

from kernels.attention import attend, check_attention
from kernels.card import card_of
from kernels.choice import takes_kernel
from kernels.configs import decode_tile, num_splits
from kernels.language import constexpr, jit, jit_for_counts, power_of_two, soft_capped, tensor, tl
from kernels.launch import launch
from kernels.paged_kv import BLOCK_TOKENS, PagedKV


def decode_attention(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """queries [n, heads, dim], block_tables [n, max_blocks] int32, lengths [n] int32 (the new token
    included; 0: a row that gives zeros) -> [n, heads, dim]."""
    check_attention(queries, kv, block_tables, lengths, window, softcap)
    if queries.shape[0] != lengths.shape[0]:
        raise ValueError(f"{queries.shape[0]} queries do not go with {lengths.shape[0]} lengths.")
    run = _decode if takes_kernel("decode_attention", queries) else decode_attention_reference
    return run(queries, kv, block_tables, lengths, scale=scale, window=window, softcap=softcap)


def decode_attention_reference(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    return attend(
        queries[:, None],
        kv,
        block_tables,
        lengths,
        lengths[:, None] - 1,
        scale=scale,
        window=window,
        softcap=softcap,
    )[:, 0]


def _decode(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int,
    softcap: float,
) -> Tensor:
    num_rows, num_heads, head_dim = queries.shape
    group = num_heads // kv.num_kv_heads
    tile = decode_tile(group, head_dim, queries.dtype, card_of(queries.device))
    max_blocks = block_tables.shape[1]
    splits = num_splits(num_rows, kv.num_kv_heads, max_blocks * BLOCK_TOKENS, tile.columns)
    result = torch.empty_like(queries, memory_format=torch.contiguous_format)
    new = {"dtype": torch.float32, "device": queries.device}
    if splits > 1:
        parts = torch.empty((num_rows, num_heads, splits, head_dim), **new)
        maxima, sums = torch.empty((2, num_rows, num_heads, splits), **new)
    else:
        # One program sees the whole sequence, and there is nothing to join.
        parts, maxima, sums = result, lengths, lengths
    launch(
        decode_kernel,
        (num_rows, kv.num_kv_heads, splits),
        {
            "queries": queries,
            "keys": kv.keys,
            "values": kv.values,
            "key_scales": kv.keys if kv.key_scales is None else kv.key_scales,
            "value_scales": kv.values if kv.value_scales is None else kv.value_scales,
            "tables": block_tables,
            "lengths": lengths,
            "parts": parts,
            "maxima": maxima,
            "sums": sums,
            "scale": float(scale),
            "softcap": float(softcap),
            "window": window,
            "row_stride": queries.stride(0),
            "head_stride": queries.stride(1),
            "max_blocks": max_blocks,
            "splits": splits,
        },
        {
            "KV_HEADS": kv.num_kv_heads,
            "GROUP": group,
            "HEAD_DIM": head_dim,
            "WIDTH": power_of_two(head_dim),
            "BLOCK": BLOCK_TOKENS,
            "ROWS": tile.rows,
            "COLUMNS": tile.columns,
            "IS_SPLIT": splits > 1,
            "HAS_SOFTCAP": softcap > 0,
            "HAS_WINDOW": window > 0,
            "IS_QUANTIZED": kv.is_quantized,
        },
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        counts=("window", "max_blocks", "splits"),
    )
    if splits > 1:
        launch(
            join_kernel,
            (num_rows, num_heads),
            {"parts": parts, "maxima": maxima, "sums": sums, "result": result},
            {
                "HEADS": num_heads,
                "HEAD_DIM": head_dim,
                "WIDTH": power_of_two(head_dim),
                "SPLITS": splits,
            },
        )
    return result


@jit_for_counts("window", "max_blocks", "splits")
def decode_kernel(
    queries: tensor,
    keys: tensor,
    values: tensor,
    key_scales: tensor,
    value_scales: tensor,
    tables: tensor,
    lengths: tensor,
    parts: tensor,
    maxima: tensor,
    sums: tensor,
    scale: tensor,
    softcap: tensor,
    window: tensor,
    row_stride: tensor,
    head_stride: tensor,
    max_blocks: tensor,
    splits: tensor,
    KV_HEADS: constexpr,
    GROUP: constexpr,
    HEAD_DIM: constexpr,
    WIDTH: constexpr,
    BLOCK: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    IS_SPLIT: constexpr,
    HAS_SOFTCAP: constexpr,
    HAS_WINDOW: constexpr,
    IS_QUANTIZED: constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(lengths + row)
    first = 0
    if HAS_WINDOW:
        first = tl.maximum(length - window, 0)
    share = tl.cdiv(tl.cdiv(length - first, splits), COLUMNS) * COLUMNS
    start = first + split * share
    end = tl.minimum(start + share, length)
    member = tl.arange(0, ROWS)
    number = tl.arange(0, WIDTH)
    head = kv_head * GROUP + member
    is_row = (member[:, None] < GROUP) & (number[None, :] < HEAD_DIM)
    query = tl.load(
        queries + row * row_stride + head[:, None] * head_stride + number[None, :],
        mask=is_row,
        other=0.0,
    )
    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for place in tl.range(start, end, COLUMNS):
        token = place + tl.arange(0, COLUMNS)
        is_held = token < end
        block = tl.load(tables + row * max_blocks + token // BLOCK, mask=is_held, other=0)
        lane = (block.to(tl.int64) * BLOCK + token % BLOCK) * KV_HEADS + kv_head
        is_column = is_held[None, :] & (number[:, None] < HEAD_DIM)
        key = tl.load(keys + lane[None, :] * HEAD_DIM + number[:, None], mask=is_column, other=0.0)
        score = tl.dot(query, key.to(query.dtype), input_precision="ieee") * scale
        if IS_QUANTIZED:
            # A scale of a key is one of its whole column of scores.
            score *= tl.load(key_scales + lane, mask=is_held, other=0.0)[None, :]
        if HAS_SOFTCAP:
            score = soft_capped(score, softcap)
        score = tl.where(is_held[None, :], score, -float("inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp(score - higher[:, None])
        fading = tl.exp(highest - higher)
        total = total * fading + tl.sum(weight, 1)
        if IS_QUANTIZED:
            weight *= tl.load(value_scales + lane, mask=is_held, other=0.0)[None, :]
        value = tl.load(
            values + lane[:, None] * HEAD_DIM + number[None, :],
            mask=is_held[:, None] & (number[None, :] < HEAD_DIM),
            other=0.0,
        )
        mixed = mixed * fading[:, None] + tl.dot(
            weight.to(query.dtype), value.to(query.dtype), input_precision="ieee"
        )
        highest = higher
    mixed = mixed / tl.where(total == 0, 1.0, total)[:, None]
    lane = (row * (KV_HEADS * GROUP) + head) * splits + split
    tl.store(
        parts + lane[:, None] * HEAD_DIM + number[None, :],
        mixed.to(parts.dtype.element_ty),
        mask=is_row,
    )
    if IS_SPLIT:
        tl.store(maxima + lane, highest, mask=member < GROUP)
        tl.store(sums + lane, total, mask=member < GROUP)


@jit
def join_kernel(
    parts: tensor,
    maxima: tensor,
    sums: tensor,
    result: tensor,
    HEADS: constexpr,
    HEAD_DIM: constexpr,
    WIDTH: constexpr,
    SPLITS: constexpr,
) -> None:
    lane = tl.program_id(0).to(tl.int64) * HEADS + tl.program_id(1)
    split = tl.arange(0, SPLITS)
    number = tl.arange(0, WIDTH)
    total = tl.load(sums + lane * SPLITS + split)
    highest = tl.load(maxima + lane * SPLITS + split)
    # A split without tokens has the sum 0 and no maximum. Where all are so, so is the row.
    is_used = total > 0
    top = tl.max(tl.where(is_used, highest, -float("inf")), 0)
    weight = tl.where(
        is_used, total * tl.exp(highest - tl.where(top == -float("inf"), 0.0, top)), 0.0
    )
    part = tl.load(
        parts + (lane * SPLITS + split[:, None]) * HEAD_DIM + number[None, :],
        mask=is_used[:, None] & (number[None, :] < HEAD_DIM),
        other=0.0,
    )
    whole = tl.sum(weight, 0)
    mixed = tl.sum(part * weight[:, None], 0) / tl.where(whole == 0, 1.0, whole)
    tl.store(
        result + lane * HEAD_DIM + number,
        mixed.to(result.dtype.element_ty),
        mask=number < HEAD_DIM,
    )
