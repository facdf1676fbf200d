"""Keys and values in blocks."""

import pytest
import torch

from kernels.paged_kv import BLOCK_TOKENS, PagedKV, allocate, gather, quantize


def test_int8_is_within_half_a_step_and_uses_the_whole_range() -> None:
    x = torch.randn(40, 3, 80, generator=torch.Generator().manual_seed(1))
    steps, scales = quantize(x)
    assert steps.dtype == torch.int8 and scales.shape == (40, 3)
    assert ((steps * scales[..., None] - x).abs() <= scales[..., None] * 0.5001).all()
    assert steps.abs().amax(-1).eq(127).all()


def test_zeros_have_the_scale_zero() -> None:
    steps, scales = quantize(torch.zeros(2, 8))
    assert not steps.any() and not scales.any()


def test_what_a_sequence_does_not_hold_is_never_looked_at() -> None:
    kv = allocate(3, 1, 2, torch.float32)
    kv.keys.fill_(torch.nan)
    kv.keys[2, :5] = 1.0
    tables = torch.tensor([[2, 10**9], [10**9, 10**9]], dtype=torch.int32)
    is_held = torch.arange(2 * BLOCK_TOKENS) < torch.tensor([[5], [0]])
    found = gather(kv.keys, None, tables, is_held, torch.float64)
    assert found.shape == (2, 2 * BLOCK_TOKENS, 1, 2) and found.dtype == torch.float64
    assert found[0, :5].eq(1).all() and not found[0, 5:].any() and not found[1].any()


def test_its_size_counts_the_scales() -> None:
    assert allocate(2, 3, 8, torch.float16).num_bytes == 2 * 2 * 16 * 3 * 8 * 2
    assert allocate(2, 3, 8, torch.int8).num_bytes == 2 * 2 * 16 * 3 * (8 + 4)


def test_what_is_no_pool_is_named() -> None:
    keys = torch.zeros(2, 16, 1, 8)
    scales = torch.zeros(2, 16, 1)
    with pytest.raises(ValueError, match="Keys must be \\[blocks, 16"):
        PagedKV(keys=keys[:, :8], values=keys[:, :8])
    with pytest.raises(ValueError, match="Values must be like keys"):
        PagedKV(keys=keys, values=keys.half())
    with pytest.raises(ValueError, match="cannot be kept as torch.int16"):
        PagedKV(keys=keys.short(), values=keys.short())
    with pytest.raises(ValueError, match="Scales belong to int8"):
        PagedKV(keys=keys, values=keys, key_scales=scales, value_scales=scales)
    with pytest.raises(ValueError, match="Scales belong to int8"):
        PagedKV(keys=keys.to(torch.int8), values=keys.to(torch.int8))
    with pytest.raises(ValueError, match="Scales must be"):
        PagedKV(
            keys=keys.to(torch.int8),
            values=keys.to(torch.int8),
            key_scales=scales[:1],
            value_scales=scales,
        )
    with pytest.raises(ValueError, match="in one piece"):
        PagedKV(keys=torch.zeros(2, 16, 1, 16)[..., ::2], values=keys)
