"""Attention of several new tokens per sequence, over what came before and over one another.

Their keys and values lie in the pool before this runs, so that there is one loop over one kind of
memory. A tile has some queries times all heads that share a KV head as its rows, and walks over the
tokens that one of them sees (Dao, arXiv 2307.08691).
"""

import torch
from torch import Tensor

from kernels.attention import attend, check_attention
from kernels.card import card_of
from kernels.choice import takes_kernel
from kernels.configs import extend_tile
from kernels.language import constexpr, jit_for_counts, power_of_two, soft_capped, tensor, tl
from kernels.launch import launch
from kernels.paged_kv import BLOCK_TOKENS, PagedKV

# Of queries at once in the reference, so that its scores stay small.
REFERENCE_ROWS = 256


def extend_attention(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    query_starts: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """queries [tokens, heads, dim] of all sequences one after another, block_tables [seqs,
    max_blocks] int32, query_starts [seqs + 1] int32, lengths [seqs] int32 -> like queries.

    Sequence s has the queries `query_starts[s]` to `query_starts[s + 1]`, which are its last
    tokens; their keys and values are in the pool already, and `lengths` count them. The last start
    is the number of queries.
    """
    check_attention(queries, kv, block_tables, lengths, window, softcap)
    if query_starts.dtype != torch.int32 or query_starts.shape != (lengths.shape[0] + 1,):
        raise ValueError(
            f"Query starts must be [{lengths.shape[0] + 1}] int32, but they are"
            f" {list(query_starts.shape)} {query_starts.dtype}."
        )
    run = _extend if takes_kernel("extend_attention", queries) else extend_attention_reference
    return run(
        queries,
        kv,
        block_tables,
        query_starts,
        lengths,
        scale=scale,
        window=window,
        softcap=softcap,
    )


def extend_attention_reference(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    query_starts: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    result = torch.zeros(queries.shape, dtype=queries.dtype, device=queries.device)
    starts, ends = query_starts[:-1].tolist(), query_starts[1:].tolist()
    for sequence, (start, end) in enumerate(zip(starts, ends, strict=True)):
        one = slice(sequence, sequence + 1)
        for first in range(start, end, REFERENCE_ROWS):
            last = min(first + REFERENCE_ROWS, end)
            # The queries are the last tokens, and of a tile nobody sees beyond its own last one.
            seen = lengths[one] - (end - last)
            positions = seen[:, None] + torch.arange(first - last, 0, device=queries.device)
            result[first:last] = attend(
                queries[None, first:last],
                kv,
                block_tables[one],
                seen,
                positions,
                scale=scale,
                window=window,
                softcap=softcap,
            )[0]
    return result


def _extend(
    queries: Tensor,
    kv: PagedKV,
    block_tables: Tensor,
    query_starts: Tensor,
    lengths: Tensor,
    *,
    scale: float,
    window: int,
    softcap: float,
) -> Tensor:
    num_tokens, num_heads, head_dim = queries.shape
    num_seqs, max_blocks = block_tables.shape
    group = num_heads // kv.num_kv_heads
    tile = extend_tile(group, head_dim, queries.dtype, kv.keys.dtype, card_of(queries.device))
    result = torch.empty_like(queries, memory_format=torch.contiguous_format)
    # Every sequence begins a tile of its own; so many are enough for any lengths.
    num_tiles = num_tokens // (tile.rows // group) + num_seqs
    launch(
        extend_kernel,
        (num_tiles, kv.num_kv_heads),
        {
            "queries": queries,
            "keys": kv.keys,
            "values": kv.values,
            "key_scales": kv.keys if kv.key_scales is None else kv.key_scales,
            "value_scales": kv.values if kv.value_scales is None else kv.value_scales,
            "tables": block_tables,
            "query_starts": query_starts,
            "lengths": lengths,
            "result": result,
            "scale": float(scale),
            "softcap": float(softcap),
            "window": window,
            "token_stride": queries.stride(0),
            "head_stride": queries.stride(1),
            "num_seqs": num_seqs,
            "max_blocks": max_blocks,
        },
        {
            "KV_HEADS": kv.num_kv_heads,
            "GROUP": group,
            "HEAD_DIM": head_dim,
            "WIDTH": power_of_two(head_dim),
            "BLOCK": BLOCK_TOKENS,
            "ROWS": tile.rows,
            "COLUMNS": tile.columns,
            "HAS_SOFTCAP": softcap > 0,
            "HAS_WINDOW": window > 0,
            "IS_QUANTIZED": kv.is_quantized,
        },
        num_warps=tile.num_warps,
        num_stages=tile.num_stages,
        counts=("window", "num_seqs", "max_blocks"),
    )
    return result


@jit_for_counts("window", "num_seqs", "max_blocks")
def extend_kernel(
    queries: tensor,
    keys: tensor,
    values: tensor,
    key_scales: tensor,
    value_scales: tensor,
    tables: tensor,
    query_starts: tensor,
    lengths: tensor,
    result: tensor,
    scale: tensor,
    softcap: tensor,
    window: tensor,
    token_stride: tensor,
    head_stride: tensor,
    num_seqs: tensor,
    max_blocks: tensor,
    KV_HEADS: constexpr,
    GROUP: constexpr,
    HEAD_DIM: constexpr,
    WIDTH: constexpr,
    BLOCK: constexpr,
    ROWS: constexpr,
    COLUMNS: constexpr,
    HAS_SOFTCAP: constexpr,
    HAS_WINDOW: constexpr,
    IS_QUANTIZED: constexpr,
) -> None:
    QUERIES: constexpr = ROWS // GROUP
    tile = tl.program_id(0)
    kv_head = tl.program_id(1)
    # Sequence s has the tiles from `query_starts[s] // QUERIES + s` on: the last such s is ours.
    low = 0
    high = num_seqs - 1
    while low < high:
        middle = (low + high + 1) // 2
        is_ours = tl.load(query_starts + middle) // QUERIES + middle <= tile
        low = tl.where(is_ours, middle, low)
        high = tl.where(is_ours, high, middle - 1)
    query_start = tl.load(query_starts + low)
    num_queries = tl.load(query_starts + low + 1) - query_start
    first_query = (tile - query_start // QUERIES - low) * QUERIES
    if first_query >= num_queries:
        return
    length = tl.load(lengths + low)
    row = tl.arange(0, ROWS)
    number = tl.arange(0, WIDTH)
    query_index = first_query + row // GROUP
    head = kv_head * GROUP + row % GROUP
    is_query = (row < QUERIES * GROUP) & (query_index < num_queries)
    is_row = is_query[:, None] & (number[None, :] < HEAD_DIM)
    token_index = (query_start + query_index).to(tl.int64)
    query = tl.load(
        queries
        + token_index[:, None] * token_stride
        + head[:, None] * head_stride
        + number[None, :],
        mask=is_row,
        other=0.0,
    )
    position = length - num_queries + query_index
    # [start, end) what one of the queries sees
    start = 0
    end = length - num_queries + tl.minimum(first_query + QUERIES, num_queries)
    if HAS_WINDOW:
        start = tl.maximum(length - num_queries + first_query - window + 1, 0)
    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, WIDTH], tl.float32)
    for place in tl.range(start, end, COLUMNS):
        token = place + tl.arange(0, COLUMNS)
        is_held = token < end
        block = tl.load(
            tables + tl.cast(low, tl.int64) * max_blocks + token // BLOCK, mask=is_held, other=0
        )
        lane = (block.to(tl.int64) * BLOCK + token % BLOCK) * KV_HEADS + kv_head
        key = tl.load(
            keys + lane[None, :] * HEAD_DIM + number[:, None],
            mask=is_held[None, :] & (number[:, None] < HEAD_DIM),
            other=0.0,
        )
        score = tl.dot(query, key.to(query.dtype), input_precision="ieee") * scale
        if IS_QUANTIZED:
            score *= tl.load(key_scales + lane, mask=is_held, other=0.0)[None, :]
        if HAS_SOFTCAP:
            score = soft_capped(score, softcap)
        is_seen = is_held[None, :] & (token[None, :] <= position[:, None])
        if HAS_WINDOW:
            is_seen = is_seen & (token[None, :] > position[:, None] - window)
        score = tl.where(is_seen, score, -float("inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        # A query that has seen nothing yet has no maximum to be taken off.
        base = tl.where(higher == -float("inf"), 0.0, higher)
        weight = tl.exp(score - base[:, None])
        fading = tl.exp(highest - base)
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
    tl.store(
        result
        + (token_index[:, None] * (KV_HEADS * GROUP) + head[:, None]) * HEAD_DIM
        + number[None, :],
        mixed.to(result.dtype.element_ty),
        mask=is_row,
    )
