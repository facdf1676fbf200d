"""One random number per seed and position: Philox 4x32 with 10 rounds (Salmon and others, "Parallel
random numbers: as easy as 1, 2, 3", 2011). The same on every device, and in every batch."""

from typing import Any

import torch
from torch import Tensor

from kernels.language import constexpr, jit, tensor, tl

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
WORD = 0xFFFFFFFF
NUM_ROUNDS = 10


def philox_reference(seeds: Tensor, positions: Tensor) -> Tensor:
    """seeds and positions [n] int64 -> the first word of each, [n] int64 in [0, 2^32)."""
    key = [seeds & WORD, seeds >> 32 & WORD]
    counter = [positions & WORD, positions >> 32 & WORD]
    zero = torch.zeros_like(positions)
    counter += [zero, zero]
    for _ in range(NUM_ROUNDS):
        # A product of two words fills 64 bits; its sign is only the uppermost of them.
        first, second = counter[0] * MULTIPLIERS[0], counter[2] * MULTIPLIERS[1]
        counter = [
            (second >> 32 & WORD) ^ counter[1] ^ key[0],
            second & WORD,
            (first >> 32 & WORD) ^ counter[3] ^ key[1],
            first & WORD,
        ]
        key = [(part + weyl) & WORD for part, weyl in zip(key, WEYL, strict=True)]
    return counter[0]


def uniform_reference(seeds: Tensor, positions: Tensor) -> Tensor:
    """[n] float32 in [0, 1): the upper 24 bits, which float32 holds exactly."""
    return (philox_reference(seeds, positions) >> 8).float() * 2.0**-24


@jit
def uniform(seed: tensor, position: tensor, ROUNDS: constexpr) -> Any:
    """The same of one seed and one position, both int64. Philox's words stand here once more, as a
    kernel sees no tuples of another file."""
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    a, b = position & 0xFFFFFFFF, position >> 32 & 0xFFFFFFFF
    c, d = position * 0, position * 0
    for _ in tl.static_range(ROUNDS):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a = (second >> 32 & 0xFFFFFFFF) ^ b ^ low
        b = second & 0xFFFFFFFF
        c = (first >> 32 & 0xFFFFFFFF) ^ d ^ high
        d = first & 0xFFFFFFFF
        low = low + 0x9E3779B9 & 0xFFFFFFFF
        high = high + 0xBB67AE85 & 0xFFFFFFFF
    return (a >> 8).to(tl.float32) * 5.9604644775390625e-08
