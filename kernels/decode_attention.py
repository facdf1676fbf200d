"""Attention of one new token per sequence over its paged keys and values."""

from torch import Tensor

from kernels.attention import attend, check_attention
from kernels.paged_kv import PagedKV


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
    return decode_attention_reference(
        queries, kv, block_tables, lengths, scale=scale, window=window, softcap=softcap
    )


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
