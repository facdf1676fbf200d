"""Sequences in a paged pool with garbage around them, and their attention, computed naively."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.paged_kv import BLOCK_TOKENS, PagedKV, allocate, quantize

# Far outside every pool: an entry that is read where it should not be ends the process.
NO_BLOCK = 2**30


@dataclass(frozen=True, slots=True)
class Paged:
    """`keys`, `values`: per sequence [tokens, kv_heads, dim] float64, what the pool is worth."""

    kv: PagedKV
    tables: Tensor
    lengths: Tensor
    keys: list[Tensor]
    values: list[Tensor]


def paged(
    lengths: Sequence[int], num_kv_heads: int, head_dim: int, dtype: torch.dtype, seed: int
) -> Paged:
    """Blocks in no order; unused ones and the tails of used ones are NaN, or else the largest."""
    generator = torch.Generator().manual_seed(seed)
    counts = [-(-length // BLOCK_TOKENS) for length in lengths]
    kv = allocate(sum(counts) + 3, num_kv_heads, head_dim, dtype)
    for pool in (kv.keys, kv.values):
        pool.fill_(torch.nan if dtype.is_floating_point else 127)
    for scales in (kv.key_scales, kv.value_scales):
        if scales is not None:
            scales.fill_(torch.nan)
    order = torch.randperm(kv.num_blocks - 2, generator=generator) + 1
    tables = torch.full((len(lengths), max(counts) + 1), NO_BLOCK, dtype=torch.int32)
    exact: tuple[list[Tensor], list[Tensor]] = ([], [])
    taken = 0
    for row, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        tables[row, :count] = order[taken : taken + count]
        taken += count
        tokens = torch.arange(length)
        slots = tables[row, tokens // BLOCK_TOKENS].long() * BLOCK_TOKENS + tokens % BLOCK_TOKENS
        for worth, pool, scales in zip(
            exact, (kv.keys, kv.values), (kv.key_scales, kv.value_scales), strict=True
        ):
            x = torch.randn(length, num_kv_heads, head_dim, generator=generator)
            places = pool.view(-1, num_kv_heads, head_dim)
            if scales is None:
                places[slots] = x.to(dtype)
                worth.append(places[slots].double())
            else:
                places[slots], scales.view(-1, num_kv_heads)[slots] = quantize(x)
                steps = scales.view(-1, num_kv_heads)[slots]
                worth.append(places[slots].double() * steps.double()[..., None])
    return Paged(kv, tables, torch.tensor(lengths, dtype=torch.int32), *exact)


def naive_attention(
    query: Tensor, keys: Tensor, values: Tensor, scale: float, window: int, softcap: float
) -> Tensor:
    """One query [heads, dim] that sees all keys [tokens, kv_heads, dim], or the last `window`."""
    if window:
        keys, values = keys[-window:], values[-window:]
    group = query.shape[0] // keys.shape[1]
    result = torch.zeros(query.shape, dtype=torch.float64)
    if not len(keys):
        return result
    for head in range(query.shape[0]):
        scores = keys[:, head // group] @ query[head].double() * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        result[head] = torch.softmax(scores, dim=0) @ values[:, head // group]
    return result
