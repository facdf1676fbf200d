"""Cosines and sines of rotary positions (Su and others, arXiv 2104.09864), every scaling baked in.

The table is made once per model, so that kernels know nothing of scalings. Those that depend on
how long a sequence has become (dynamic, longrope) are taken for `max_positions`, as llama.cpp does:
what is kept of a sequence must not change because the sequence grew.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

ScalingKind = Literal["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryScaling:
    """How positions beyond those of the training are met; names as in transformers' configs.

    - linear: all frequencies through `factor`.
    - dynamic: the base grows with the context (NTK-aware, from u/bloc97 and u/emozilla).
    - yarn: Peng and others, arXiv 2309.00071. `mscale`, `mscale_all_dim`: DeepSeek's.
    - longrope: Ding and others, arXiv 2402.13753; one divisor per frequency.
    - llama3: low frequencies through `factor`, with a ramp between two wavelengths.
    - proportional: only the share `rotated` of the frequencies turns, and dim counts whole.

    `divisors`: one more divisor per frequency, whatever the kind, as GGUF files have them in
    `rope_freqs.weight`. `attention_factor`: of cosines and sines; None: what the method says.
    """

    kind: ScalingKind = "default"
    factor: float = 1.0
    original_positions: int = 0
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    truncates: bool = True
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    rotated: float = 1.0
    divisors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.factor <= 0:
            raise ValueError(f"A rotary factor must be above 0, got {self.factor}.")
        if self.kind in ("dynamic", "yarn", "longrope", "llama3") and self.original_positions < 2:
            raise ValueError(f"The rotary scaling {self.kind} needs its original positions.")
        if self.kind == "longrope" and not (self.short_factors and self.long_factors):
            raise ValueError("The rotary scaling longrope needs its short and long factors.")
        if self.kind == "llama3" and self.high_frequency_factor <= self.low_frequency_factor:
            raise ValueError("The high frequency factor of llama3 must be above the low one.")


PLAIN = RotaryScaling()


def rotary_table(
    dim: int,
    base: float,
    max_positions: int,
    scaling: RotaryScaling = PLAIN,
    device: torch.device | str = "cpu",
) -> Tensor:
    """[max_positions, 2, dim / 2] float32: cosines, then sines; `dim` numbers of a head turn."""
    if dim < 2 or dim % 2:
        raise ValueError(f"An even count of numbers must turn, got {dim}.")
    frequencies = rotary_frequencies(dim, base, max_positions, scaling)
    # In float64: at position 100,000 a float32 angle is off by up to 4e-3.
    angles = torch.arange(max_positions, dtype=torch.float64)[:, None] * frequencies
    turned = torch.stack((angles.cos(), angles.sin()), dim=1) * attention_factor(
        max_positions, scaling
    )
    return turned.float().to(device)


def rotary_frequencies(dim: int, base: float, max_positions: int, scaling: RotaryScaling) -> Tensor:
    """[dim / 2] float64, in radians per position."""
    halves = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    if scaling.kind == "dynamic":
        growth = max(1.0, max_positions / scaling.original_positions)
        stretch = scaling.factor * growth - (scaling.factor - 1)
        base = base * stretch ** (dim / (dim - 2)) if dim > 2 else base
    frequencies = base**-halves
    match scaling.kind:
        case "linear":
            frequencies = frequencies / scaling.factor
        case "yarn":
            kept = 1 - _yarn_ramp(dim, base, scaling)
            frequencies = frequencies * (kept + (1 - kept) / scaling.factor)
        case "longrope":
            is_long = max_positions > scaling.original_positions
            factors = scaling.long_factors if is_long else scaling.short_factors
            frequencies = frequencies / _per_frequency(factors, dim)
        case "llama3":
            kept = _llama3_ramp(frequencies, scaling)
            frequencies = frequencies * (kept + (1 - kept) / scaling.factor)
        case "proportional":
            turns = torch.arange(dim // 2) < int(scaling.rotated * dim // 2)
            frequencies = torch.where(turns, frequencies, 0.0) / scaling.factor
    if scaling.divisors:
        frequencies = frequencies / _per_frequency(scaling.divisors, dim)
    return frequencies


def attention_factor(max_positions: int, scaling: RotaryScaling) -> float:
    """What cosines and sines are multiplied with."""
    if scaling.kind not in ("yarn", "longrope"):
        return 1.0
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.kind == "longrope":
        # Without a factor it is how far the context was stretched.
        factor = scaling.factor
        if factor == 1.0:
            factor = max_positions / scaling.original_positions
        if factor <= 1:
            return 1.0
        return math.sqrt(1 + math.log(factor) / math.log(scaling.original_positions))
    if scaling.mscale and scaling.mscale_all_dim:
        return _yarn_size(scaling.factor, scaling.mscale) / _yarn_size(
            scaling.factor, scaling.mscale_all_dim
        )
    return _yarn_size(scaling.factor, 1.0)


def _yarn_size(factor: float, mscale: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1


def _yarn_ramp(dim: int, base: float, scaling: RotaryScaling) -> Tensor:
    """[dim / 2]: 0 where a frequency stays, 1 where it is divided."""

    def index_with(num_turns: float) -> float:
        """Of the frequency that turns so often within the original positions."""
        length = scaling.original_positions / (num_turns * 2 * math.pi)
        return dim * math.log(length) / (2 * math.log(base))

    low, high = index_with(scaling.beta_fast), index_with(scaling.beta_slow)
    if scaling.truncates:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    places = torch.arange(dim // 2, dtype=torch.float64)
    return ((places - low) / (high - low)).clamp(0, 1)


def _llama3_ramp(frequencies: Tensor, scaling: RotaryScaling) -> Tensor:
    """[dim / 2]: 1 where a frequency stays, 0 where it is divided."""
    num_turns = scaling.original_positions * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    return ((num_turns - low) / (high - low)).clamp(0, 1)


def _per_frequency(factors: tuple[float, ...], dim: int) -> Tensor:
    if len(factors) != dim // 2:
        raise ValueError(f"{dim // 2} rotary factors are needed, and there are {len(factors)}.")
    return torch.tensor(factors, dtype=torch.float64)
