"""How many rows, columns, warps and stages an attention kernel gets, by head size and card.

What stands here was proved by compiling for every card: no register spilled, shared memory within
the card's. No card has measured it yet.
"""

from dataclasses import dataclass

import torch

from kernels.card import Card
from kernels.language import power_of_two

LARGEST_HEAD = 256
"""Above it a tile of attention does not fit."""

# So many programs keep the largest cards busy; a KV is split until there are.
NUM_PROGRAMS = 256
MOST_SPLITS = 64


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` of queries (times heads of a group) by `columns` of tokens."""

    rows: int
    columns: int
    num_warps: int
    num_stages: int


def decode_tile(group: int, head_dim: int, dtype: torch.dtype, card: Card) -> Tile:
    """`group`: query heads per KV head; they are the rows, 16 at least for the tensor cores."""
    rows = max(16, power_of_two(group))
    width = power_of_two(head_dim)
    columns = 32 if width > 128 or dtype == torch.float32 else 64
    is_large = width > 128 or rows > 32 or (dtype == torch.float32 and width > 64)
    num_warps = 8 if is_large else 4
    return Tile(rows, columns, num_warps, 2)


def extend_tile(
    group: int, head_dim: int, dtype: torch.dtype, kv_dtype: torch.dtype, card: Card
) -> Tile:
    """A tile of several queries, times the `group` of heads that read the same KV head."""
    width = power_of_two(head_dim)
    least = max(16, power_of_two(group))
    if dtype == torch.float32:
        # Without tensor cores, and twice as large: for small models and for comparison.
        if width <= 64:
            return Tile(least, 32, 4, 2)
        return Tile(least, 32 if width <= 128 else 16, 8 if width > 128 else 4, 1)
    if width <= 64:
        # Scales need registers: 64 columns spill on sm_120, and 32 on sm_80.
        is_narrow = kv_dtype == torch.int8 and card is Card.DESKTOP
        return Tile(max(64, least), 32 if is_narrow else 64, 4, 2)
    if width <= 128 and card is Card.DESKTOP:
        # 64 columns spill, by 8 warps as by 4.
        return Tile(max(64, least), 32, 4, 2)
    if width <= 128:
        return Tile(max(128 if card is Card.HOPPER else 64, least), 64, 8, 2)
    return Tile(max(64, least), 32, 8, 2)


def num_splits(num_rows: int, num_kv_heads: int, max_tokens: int, columns: int) -> int:
    """Into how many pieces the KV of a decode step is split: a power of two that depends on what
    is fixed for a graph, and not on how long the sequences are."""
    wanted = -(-NUM_PROGRAMS // max(1, num_rows * num_kv_heads))
    most = -(-max_tokens // columns)
    return max(1, min(power_of_two(wanted), power_of_two(most), MOST_SPLITS))


def norm_tile(width: int) -> Tile:
    """Narrow rows, such as those of heads, share a program."""
    columns = power_of_two(width)
    if columns <= 256:
        return Tile(1024 // columns if columns > 16 else 64, columns, 4, 1)
    return Tile(1, columns, 4 if columns <= 2048 else 8 if columns <= 8192 else 16, 1)
