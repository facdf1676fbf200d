"""How a kernel reads packed weights: by quads, the same way for all seven formats.

A quad is four words of the plane `low`, 16 bytes, and holds two strips of 16 neighbouring columns:
one in the low nibbles, one in the high nibbles. (For Q8_0 it is eight words, one after the other.)
With s = group / 16, quad q of a row holds

    strip `lo` = q // s * 2s + q % s      and      strip `hi` = lo + s

and a weight is `scale * quant - offset`, with one scale and one offset for each strip.
"""

from typing import Any

from torch import Tensor

from kernels.language import constexpr, jit, tensor, tl
from kernels.quant.planes import QuantizedMatrix


def planes_of(matrix: QuantizedMatrix) -> dict[str, Tensor]:
    """What kernels take. `low` stands in for the planes that a type lacks."""
    low = matrix.planes["low"]
    return {
        "low": low,
        "high": matrix.planes.get("high", low),
        "scales": matrix.planes["scales"],
        "subscales": matrix.planes.get("subscales", low),
    }


@jit
def load_quads(
    low: tensor,
    high: tensor,
    scales: tensor,
    subscales: tensor,
    rows: tensor,
    quads: tensor,
    is_inside: tensor,
    num_columns: tensor,
    FORMAT: constexpr,
) -> Any:
    """Quants of both strips, int32 [rows, quads, 4] with four bytes each, then their scales and
    offsets, float32 [rows, quads].

    rows int64 [rows, 1], quads int32 [1, quads], both of this matrix. Where not `is_inside`
    [1, quads], scales and offsets are zero. Quants are bytes without sign, in Q8_0 with one.
    """
    word = tl.arange(0, 4)[None, None, :]
    place = rows * (num_columns // 32) + quads
    if FORMAT == "Q8_0":
        lo = tl.load(low + place[:, :, None] * 8 + word)
        hi = tl.load(low + place[:, :, None] * 8 + word + 4)
    else:
        packed = tl.load(low + place[:, :, None] * 4 + word)
        lo = packed & 0x0F0F0F0F
        hi = (packed >> 4) & 0x0F0F0F0F

    if FORMAT == "Q4_1":
        lo_scale = tl.load(scales + place * 2, mask=is_inside, other=0.0).to(tl.float32)
        lo_offset = -tl.load(scales + place * 2 + 1, mask=is_inside, other=0.0).to(tl.float32)
        hi_scale = lo_scale
        hi_offset = lo_offset
    elif FORMAT == "Q4_K" or FORMAT == "Q5_K":
        block = rows * (num_columns // 256) + quads // 8
        chunk = quads % 8 // 2
        if FORMAT == "Q5_K":
            fifth = tl.load(high + (block * 8 + quads % 2 * 4)[:, :, None] + word)
            fifth >>= (2 * chunk)[:, :, None]
            lo |= (fifth & 0x01010101) << 4
            hi |= ((fifth >> 1) & 0x01010101) << 4
        # Scales of two sub-blocks at a time, in the bytes of a half word; see `dequantize`.
        head = scales + block * 8
        half = head + chunk % 2
        first = tl.load(half + 2).to(tl.int32)
        second = tl.load(half + 4).to(tl.int32)
        third = tl.load(half + 6).to(tl.int32)
        is_early = chunk < 2
        pair = tl.where(is_early, first & 0x3F3F, (third & 0x0F0F) | ((first >> 2) & 0x3030))
        least = tl.where(
            is_early, second & 0x3F3F, ((third >> 4) & 0x0F0F) | ((second >> 2) & 0x3030)
        )
        scale = tl.load(head, mask=is_inside, other=0).to(tl.float16, bitcast=True)
        minimum = tl.load(head + 1, mask=is_inside, other=0).to(tl.float16, bitcast=True)
        lo_scale = scale.to(tl.float32) * (pair & 0xFF).to(tl.float32)
        hi_scale = scale.to(tl.float32) * (pair >> 8).to(tl.float32)
        lo_offset = minimum.to(tl.float32) * (least & 0xFF).to(tl.float32)
        hi_offset = minimum.to(tl.float32) * (least >> 8).to(tl.float32)
    elif FORMAT == "Q6_K":
        block = rows * (num_columns // 256) + quads // 8
        part = block * 16 + quads % 8 // 4 * 8  # the half of the block
        upper = tl.load(high + (part + quads % 2 * 4)[:, :, None] + word)
        upper >>= (quads % 4 // 2 * 2)[:, :, None]
        lo |= (upper << 4) & 0x30303030
        hi |= upper & 0x30303030
        scale = tl.load(scales + block, mask=is_inside, other=0.0).to(tl.float32)
        subscale = subscales + part + quads % 4
        lo_scale = scale * tl.load(subscale).to(tl.float32)
        hi_scale = scale * tl.load(subscale + 4).to(tl.float32)
        lo_offset = 32.0 * lo_scale
        hi_offset = 32.0 * hi_scale
    else:
        lo_scale = tl.load(scales + place, mask=is_inside, other=0.0).to(tl.float32)
        hi_scale = lo_scale
        if FORMAT == "Q5_0":
            # The product puts bits 0-3 of a number at bit 4 of four bytes.
            bits = tl.load(high + place)[:, :, None] >> (4 * word)
            lo |= ((bits & 15) * 0x02040810) & 0x10101010
            hi |= (((bits >> 16) & 15) * 0x02040810) & 0x10101010
            lo_offset = 16.0 * lo_scale
        elif FORMAT == "Q4_0":
            lo_offset = 8.0 * lo_scale
        else:
            lo_offset = 0.0 * lo_scale
        hi_offset = lo_offset
    return lo, hi, lo_scale, hi_scale, lo_offset, hi_offset


@jit
def first_strips(quads: tensor, GROUP: constexpr) -> Any:
    """The strip that lies in the low nibbles of a quad; the other is GROUP / 16 behind it."""
    size: constexpr = GROUP // 16
    return quads // size * (2 * size) + quads % size


@jit
def as_numbers(quants: tensor, scale: tensor, offset: tensor, FORMAT: constexpr) -> Any:
    """quants int32 [rows, quads, 4], scale and offset [rows, quads] -> float32
    [rows, quads, 16]. Joins leave every number with the thread that has its word."""
    even = tl.join(_byte(quants, scale, offset, 0, FORMAT), _byte(quants, scale, offset, 2, FORMAT))
    odd = tl.join(_byte(quants, scale, offset, 1, FORMAT), _byte(quants, scale, offset, 3, FORMAT))
    return tl.reshape(tl.join(even, odd), [quants.shape[0], quants.shape[1], 16])


@jit
def _byte(quants: tensor, scale: tensor, offset: tensor, BYTE: constexpr, FORMAT: constexpr) -> Any:
    quant = (quants >> (8 * BYTE)) & 0xFF
    if FORMAT == "Q8_0":
        quant = (quants << (24 - 8 * BYTE)) >> 24
    return quant.to(tl.float32) * scale[:, :, None] - offset[:, :, None]


@jit
def no_sums(COUNT: constexpr, ROWS: constexpr, QUADS: constexpr) -> Any:
    """COUNT times float32 [ROWS, QUADS]."""
    sums = tl.zeros([ROWS, QUADS], tl.float32)
    if COUNT == 1:
        return (sums,)
    else:
        return (sums,) * COUNT
