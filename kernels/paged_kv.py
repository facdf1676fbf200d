"""The keys and values of one layer in blocks of 16 tokens, as numbers or as int8 with scales.

A sequence holds its tokens in the blocks of its row of a block table: token t lies in block
`row[t // 16]`, place `t % 16`. What a row has beyond the length of its sequence is never read.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK_TOKENS = 16

# float64 is for the references alone: it is what tests hold to be true.
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedKV:
    """keys, values [num_blocks, 16, num_kv_heads, head_dim]; where they are int8, a number is
    worth itself times the scale of its token and head, [num_blocks, 16, num_kv_heads] float32."""

    keys: Tensor
    values: Tensor
    key_scales: Tensor | None = None
    value_scales: Tensor | None = None

    def __post_init__(self) -> None:
        shape = tuple(self.keys.shape)
        if len(shape) != 4 or shape[1] != BLOCK_TOKENS:
            raise ValueError(
                f"Keys must be [blocks, {BLOCK_TOKENS}, heads, dim], but they are {list(shape)}."
            )
        if tuple(self.values.shape) != shape or self.values.dtype != self.keys.dtype:
            raise ValueError(
                f"Values must be like keys, {list(shape)} {self.keys.dtype}, but they are"
                f" {list(self.values.shape)} {self.values.dtype}."
            )
        if self.keys.dtype not in (*FLOATS, torch.int8):
            raise ValueError(f"Keys and values cannot be kept as {self.keys.dtype}.")
        if not (self.keys.is_contiguous() and self.values.is_contiguous()):
            raise ValueError("Keys and values must lie in one piece.")
        for scales in (self.key_scales, self.value_scales):
            if (scales is not None) != self.is_quantized:
                raise ValueError("Scales belong to int8 keys and values, and to no others.")
            if scales is not None and (
                tuple(scales.shape) != shape[:3]
                or scales.dtype != torch.float32
                or not scales.is_contiguous()
            ):
                raise ValueError(
                    f"Scales must be {list(shape[:3])} float32 in one piece, but they are"
                    f" {list(scales.shape)} {scales.dtype}."
                )

    @property
    def is_quantized(self) -> bool:
        return bool(self.keys.dtype == torch.int8)

    @property
    def num_blocks(self) -> int:
        return int(self.keys.shape[0])

    @property
    def num_kv_heads(self) -> int:
        return int(self.keys.shape[2])

    @property
    def head_dim(self) -> int:
        return int(self.keys.shape[3])

    @property
    def num_bytes(self) -> int:
        tensors = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(x.numel() * x.element_size() for x in tensors if x is not None)


def allocate(
    num_blocks: int,
    num_kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
) -> PagedKV:
    """Empty blocks, all zero."""
    shape = (num_blocks, BLOCK_TOKENS, num_kv_heads, head_dim)
    keys, values = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
    if dtype != torch.int8:
        return PagedKV(keys=keys, values=values)
    scales = (torch.zeros(shape[:3], dtype=torch.float32, device=device) for _ in range(2))
    return PagedKV(keys=keys, values=values, key_scales=next(scales), value_scales=next(scales))


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [..., dim] -> int8 alike and float32 scales [...]: the largest size of a row becomes 127,
    what lies between two steps goes to the nearer one, and a half upwards."""
    numbers = x.float()
    scales = numbers.abs().amax(dim=-1) / 127
    # A row of zeros has the scale 0, and stays zeros.
    steps = numbers / torch.where(scales > 0, scales, 1.0)[..., None]
    return torch.floor(steps + 0.5).clamp(-127, 127).to(torch.int8), scales


def gather(
    pool: Tensor, scales: Tensor | None, tables: Tensor, is_held: Tensor, dtype: torch.dtype
) -> Tensor:
    """The tokens of some sequences, [seqs, blocks * 16, heads, dim] in `dtype`.

    `pool` and `scales` are those of the keys or of the values, tables [seqs, blocks], is_held
    [seqs, blocks * 16]. Tokens that are not held are zeros, whatever lies there.
    """
    num_seqs, num_columns = tables.shape
    # A block is wanted when its first token is held; other entries of a table may be anything.
    is_wanted = is_held.view(num_seqs, num_columns, BLOCK_TOKENS)[:, :, 0]
    blocks = torch.where(is_wanted, tables, 0).long()
    found = pool[blocks].flatten(1, 2).to(dtype)
    if scales is not None:
        found = found * scales[blocks].flatten(1, 2).to(dtype)[..., None]
    return torch.where(is_held[:, :, None, None], found, 0.0)
