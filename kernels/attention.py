"""What decode and extend attention have in common: their checks, and attention in plain torch."""

import torch
from torch import Tensor

from kernels.paged_kv import BLOCK_TOKENS, PagedKV, gather


def check_attention(
    queries: Tensor, kv: PagedKV, tables: Tensor, lengths: Tensor, window: int, softcap: float
) -> None:
    """Raises ValueError: the arguments do not go together."""
    if queries.dim() != 3 or queries.stride(2) != 1:
        raise ValueError(
            f"Queries must be [tokens, heads, dim] with adjacent numbers, but they are"
            f" {list(queries.shape)}."
        )
    if queries.shape[2] != kv.head_dim or queries.shape[1] % kv.num_kv_heads:
        raise ValueError(
            f"Queries of {queries.shape[1]} heads of {queries.shape[2]} numbers do not go with"
            f" {kv.num_kv_heads} KV heads of {kv.head_dim}."
        )
    if tables.dtype != torch.int32 or lengths.dtype != torch.int32:
        raise ValueError("Block tables and lengths must be int32.")
    if tables.dim() != 2 or lengths.dim() != 1 or tables.shape[0] != lengths.shape[0]:
        raise ValueError(
            f"Block tables {list(tables.shape)} do not go with lengths {list(lengths.shape)}."
        )
    if not (tables.is_contiguous() and lengths.is_contiguous()):
        raise ValueError("Block tables and lengths must lie in one piece.")
    if window < 0 or softcap < 0:
        raise ValueError("A window and a softcap are 0 (none) or above.")


def attend(
    queries: Tensor,
    kv: PagedKV,
    tables: Tensor,
    lengths: Tensor,
    positions: Tensor,
    *,
    scale: float,
    window: int,
    softcap: float,
) -> Tensor:
    """Softmax attention of queries [seqs, m, heads, dim] at `positions` [seqs, m], like queries.

    A query sees the tokens of its sequence up to its own position, and with a window only the last
    `window` of them. One that sees nothing gives zeros. Computed in float32, or in float64 when
    the queries are.
    """
    num_seqs, num_rows, num_heads, head_dim = queries.shape
    exact = torch.promote_types(queries.dtype, torch.float32)
    if tables.device.type == "cpu":
        # Elsewhere a look at the lengths would wait for the device.
        tables = tables[:, : -(-int(lengths.max()) // BLOCK_TOKENS) if num_seqs else 0]
    places = torch.arange(tables.shape[1] * BLOCK_TOKENS, device=queries.device)
    is_held = places < lengths[:, None]
    # [seqs, kv_heads, tokens, dim], and the query heads of one KV head as rows beside one another.
    keys = gather(kv.keys, kv.key_scales, tables, is_held, exact).transpose(1, 2)
    values = gather(kv.values, kv.value_scales, tables, is_held, exact).transpose(1, 2)
    group = num_heads // kv.num_kv_heads
    rows = queries.to(exact).unflatten(2, (kv.num_kv_heads, group)).permute(0, 2, 3, 1, 4)
    scores = rows.flatten(2, 3) @ keys.transpose(2, 3) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    is_seen = is_held[:, None, :] & (places <= positions[:, :, None])
    if window:
        is_seen &= places > positions[:, :, None] - window
    is_seen = is_seen.repeat(1, group, 1)[:, None]
    scores = scores.masked_fill(~is_seen, -torch.inf)
    # Where nothing is seen the softmax of nothing would be NaN.
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    mixed = (weights @ values).unflatten(2, (group, num_rows))
    return mixed.permute(0, 3, 1, 2, 4).flatten(2, 3).to(queries.dtype)
