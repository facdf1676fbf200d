"""Activations as small whole numbers: int8 with one scale for 32 neighbouring columns.

What llama.cpp calls q8_1. On Gaussian numbers it moves the products of a layer by 6e-3 of their
size; `matvec` has an exact mode for those who want none of that.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.language import constexpr, jit_for_counts, power_of_two, tensor, tl
from kernels.launch import launch

MAX_TOKENS = 8
BLOCKS = 32  # of a program


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedActivations:
    """Of up to eight tokens, which lie side by side, so that one load brings all of them.

    `num_slots` is the number of tokens or the next power of two; what is over is zero.
    """

    num_tokens: int
    quants: Tensor  # int8 [num_columns / 16, num_slots, 16]
    scales: Tensor  # float32 [num_columns / 32, num_slots]
    sums: Tensor  # float32 [num_columns / 16, num_slots], of the quants: whole numbers

    @property
    def num_slots(self) -> int:
        return int(self.scales.shape[1])


def quantize_activations(x: Tensor) -> QuantizedActivations:
    """x [num_tokens, num_columns], at most eight tokens and columns in whole blocks of 32."""
    num_tokens, num_columns = x.shape
    if not 1 <= num_tokens <= MAX_TOKENS or num_columns % 32:
        raise ValueError(
            f"Between one and {MAX_TOKENS} tokens of whole blocks of 32 columns can be quantised,"
            f" not {num_tokens} of {num_columns:,}."
        )
    if not takes_kernel("quantize_activations", x):
        return quantize_activations_reference(x)
    num_slots = power_of_two(num_tokens)
    num_blocks = num_columns // 32
    made = QuantizedActivations(
        num_tokens=num_tokens,
        quants=torch.empty(2 * num_blocks, num_slots, 16, dtype=torch.int8, device=x.device),
        scales=torch.empty(num_blocks, num_slots, dtype=torch.float32, device=x.device),
        sums=torch.empty(2 * num_blocks, num_slots, dtype=torch.float32, device=x.device),
    )
    launch(
        quantize_kernel,
        (-(-num_blocks // BLOCKS), num_slots),
        {
            "x": x.contiguous(),
            "quants": made.quants,
            "scales": made.scales,
            "sums": made.sums,
            "num_tokens": num_tokens,
            "num_blocks": num_blocks,
        },
        {"SLOTS": num_slots, "BLOCKS": BLOCKS},
        num_warps=1,
        counts=("num_tokens", "num_blocks"),
    )
    return made


def quantize_activations_reference(x: Tensor) -> QuantizedActivations:
    """As `quantize_activations`, in plain torch."""
    num_tokens, num_columns = x.shape
    padded = x.new_zeros(power_of_two(num_tokens), num_columns, dtype=torch.float32)
    padded[:num_tokens] = x
    blocks = padded.view(-1, num_columns // 32, 32)
    largest = blocks.abs().amax(dim=-1)
    # Divided, not multiplied by a reciprocal: a last bit would move what lies between two steps.
    inverse = torch.full_like(largest, 127.0) / largest.where(largest > 0, 1.0)
    quants = torch.floor(blocks * inverse.unsqueeze(-1) + 0.5).clamp(-127, 127)
    strips = quants.view(padded.shape[0], num_columns // 16, 16).transpose(0, 1)
    return QuantizedActivations(
        num_tokens=num_tokens,
        quants=strips.to(torch.int8).contiguous(),
        scales=(largest / 127.0).t().contiguous(),
        sums=strips.sum(dim=-1).contiguous(),
    )


def dequantize_activations(made: QuantizedActivations) -> Tensor:
    """float32 [num_tokens, num_columns]: what the products are made of."""
    strips = made.quants.float().transpose(0, 1)
    blocks = strips.reshape(made.num_slots, -1, 32) * made.scales.t().unsqueeze(-1)
    return blocks.flatten(1)[: made.num_tokens]


@jit_for_counts("num_tokens", "num_blocks")
def quantize_kernel(
    x: tensor,
    quants: tensor,
    scales: tensor,
    sums: tensor,
    num_tokens: tensor,
    num_blocks: tensor,
    SLOTS: constexpr,
    BLOCKS: constexpr,
) -> None:
    """Grid: (blocks of 32 columns / BLOCKS, SLOTS)."""
    block = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    slot = tl.program_id(1)
    half = tl.arange(0, 2)[None, :, None]
    column = tl.arange(0, 16)[None, None, :]
    strip = block[:, None, None] * 2 + half
    is_block = block < num_blocks
    inside = is_block[:, None, None] & (strip >= 0)
    start = slot.to(tl.int64) * num_blocks * 32
    numbers = tl.load(
        x + start + strip * 16 + column, mask=inside & (slot < num_tokens), other=0.0
    ).to(tl.float32)
    largest = tl.max(tl.max(tl.abs(numbers), 2), 1)
    inverse = tl.div_rn(127.0, tl.where(largest > 0, largest, 1.0))
    whole = tl.floor(numbers * inverse[:, None, None] + 0.5)
    whole = tl.minimum(tl.maximum(whole, -127.0), 127.0)
    tl.store(quants + (strip * SLOTS + slot) * 16 + column, whole.to(tl.int8), mask=inside)
    tl.store(scales + block * SLOTS + slot, tl.div_rn(largest, 127.0), mask=is_block)
    strips = block[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(sums + strips * SLOTS + slot, tl.sum(whole, 2), mask=is_block[:, None])
