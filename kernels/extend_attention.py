"""Attention of several new tokens per sequence, over what came before and over one another."""

import torch
from torch import Tensor

from kernels.attention import attend, check_attention
from kernels.paged_kv import PagedKV

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
    tokens; their keys and values are in the pool already, and `lengths` count them.
    """
    check_attention(queries, kv, block_tables, lengths, window, softcap)
    if query_starts.dtype != torch.int32 or query_starts.shape != (lengths.shape[0] + 1,):
        raise ValueError(
            f"Query starts must be [{lengths.shape[0] + 1}] int32, but they are"
            f" {list(query_starts.shape)} {query_starts.dtype}."
        )
    return extend_attention_reference(
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
