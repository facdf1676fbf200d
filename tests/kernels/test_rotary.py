"""Queries and keys are turned, and keys and values go into their blocks."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.paged_kv import PagedKV, allocate, quantize
from kernels.rotary import rotary_table, rotate_and_store, rotate_and_store_reference
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory

F32, F16, BF16, I8 = torch.float32, torch.float16, torch.bfloat16, torch.int8
HEADS, KV_HEADS = 3, 2

# A block's first and last place, a hole for padding, and the same block twice.
SLOTS = torch.tensor([16, 31, -1, 47, 20])
POSITIONS = torch.tensor([0, 1, 7, 100, 4095])


@dataclass(frozen=True, slots=True)
class Tokens:
    queries: Tensor
    keys: Tensor
    values: Tensor


def tokens(head_dim: int, dtype: torch.dtype) -> Tokens:
    """As slices of one row, the way a fused product gives them."""
    generator = torch.Generator().manual_seed(head_dim)
    row = torch.randn(len(SLOTS), HEADS + 2 * KV_HEADS, head_dim, generator=generator).to(dtype)
    queries, keys, values = row.split((HEADS, KV_HEADS, KV_HEADS), dim=1)
    return Tokens(queries, keys, values)


def naively_turned(x: Tensor, rotary_dim: int, is_interleaved: bool) -> Tensor:
    """Pair by pair, as complex numbers in float64; the table is the plain one of base 10,000."""
    result = x.double().clone()
    half = rotary_dim // 2
    for pair in range(half):
        first, second = (2 * pair, 2 * pair + 1) if is_interleaved else (pair, pair + half)
        angles = POSITIONS.double() * 10000 ** (-2 * pair / rotary_dim)
        turned = torch.complex(x[..., first].double(), x[..., second].double())
        turned = turned * torch.polar(torch.ones_like(angles), angles)[:, None]
        result[..., first], result[..., second] = turned.real, turned.imag
    return result


def run(
    is_kernel: bool, given: Tokens, table: Tensor | None, kv: PagedKV, **options: bool
) -> Tensor:
    call = rotate_and_store if is_kernel else rotate_and_store_reference
    arguments = (given.queries, given.keys, given.values, POSITIONS, SLOTS, table, kv)
    if not is_kernel:
        return call(*arguments, **options)
    with interpreted():
        return call(*arguments, **options)


def guarded_pool(memory: Memory, head_dim: int, dtype: torch.dtype) -> PagedKV:
    kv = allocate(4, KV_HEADS, head_dim, dtype)
    for pool in (kv.keys, kv.values):
        pool.fill_(9)
    for scales in (kv.key_scales, kv.value_scales):
        if scales is not None:
            scales.fill_(9)
    return PagedKV(
        keys=memory.guarded(kv.keys),
        values=memory.guarded(kv.values),
        key_scales=None if kv.key_scales is None else memory.guarded(kv.key_scales),
        value_scales=None if kv.value_scales is None else memory.guarded(kv.value_scales),
    )


def kept(pool: Tensor, slots: Tensor) -> Tensor:
    return pool.flatten(0, 1)[slots]


WRITTEN = SLOTS >= 0
UNTOUCHED = [slot for slot in range(4 * 16) if slot not in SLOTS.tolist()]
WAYS = pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])


@WAYS
@pytest.mark.parametrize("is_interleaved", [False, True], ids=["halves", "neighbours"])
@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "head_dim", "rotary_dim"),
    [(F32, F32, 64, 64), (F16, F16, 80, 32), (BF16, BF16, 96, 96), (BF16, F32, 16, 8)],
    ids=["f32", "f16-part-of-80", "bf16-96", "bf16-on-f32-pool"],
)
def test_heads_turn_to_their_positions_and_are_kept(
    memory: Memory,
    is_kernel: bool,
    is_interleaved: bool,
    dtype: torch.dtype,
    kv_dtype: torch.dtype,
    head_dim: int,
    rotary_dim: int,
) -> None:
    given = tokens(head_dim, dtype)
    kv = guarded_pool(memory, head_dim, kv_dtype)
    table = rotary_table(rotary_dim, 10000.0, 4096)
    turned = run(is_kernel, given, table, kv, is_interleaved=is_interleaved)
    assert turned.dtype == dtype
    assert_close_to_exact(turned, naively_turned(given.queries, rotary_dim, is_interleaved))
    exact = naively_turned(given.keys, rotary_dim, is_interleaved)
    assert_close_to_exact(kept(kv.keys, SLOTS[WRITTEN]), exact[WRITTEN])
    assert torch.equal(kept(kv.values, SLOTS[WRITTEN]), given.values[WRITTEN].to(kv_dtype))
    for pool in (kv.keys, kv.values):
        assert (kept(pool, torch.tensor(UNTOUCHED)) == 9).all()


@WAYS
@pytest.mark.parametrize("dtype", [F32, BF16], ids=["f32", "bf16"])
def test_an_int8_pool_gets_steps_and_a_scale_per_token_and_head(
    memory: Memory, is_kernel: bool, dtype: torch.dtype
) -> None:
    given = tokens(80, dtype)
    # A head of zeros has no size to be scaled by.
    given.values[0, 1] = 0
    kv = guarded_pool(memory, 80, I8)
    run(is_kernel, given, rotary_table(80, 10000.0, 4096), kv)
    exact = naively_turned(given.keys, 80, False)[WRITTEN]
    assert kv.key_scales is not None and kv.value_scales is not None
    scales = kept(kv.key_scales, SLOTS[WRITTEN])[..., None].double()
    worth = kept(kv.keys, SLOTS[WRITTEN]).double() * scales
    assert ((worth - exact).abs() <= scales * 0.501).all()
    assert kept(kv.keys, SLOTS[WRITTEN]).abs().amax(-1).eq(127).all()
    steps, value_scales = quantize(given.values[WRITTEN])
    assert torch.equal(kept(kv.values, SLOTS[WRITTEN]), steps)
    assert torch.equal(kept(kv.value_scales, SLOTS[WRITTEN]), value_scales)
    untouched = torch.tensor(UNTOUCHED)
    assert (kept(kv.keys, untouched) == 9).all() and (kept(kv.key_scales, untouched) == 9).all()


@WAYS
def test_without_a_table_nothing_turns(memory: Memory, is_kernel: bool) -> None:
    given = tokens(32, F32)
    kv = guarded_pool(memory, 32, F32)
    assert torch.equal(run(is_kernel, given, None, kv), given.queries)
    assert torch.equal(kept(kv.keys, SLOTS[WRITTEN]), given.keys[WRITTEN])


def test_arguments_that_do_not_go_together_are_named(memory: Memory) -> None:
    given, kv = tokens(32, F32), allocate(4, KV_HEADS, 32, F32)
    table = rotary_table(32, 10000.0, 64)

    def call(keys: Tensor = given.keys, slots: Tensor = SLOTS, table: Tensor = table) -> None:
        rotate_and_store(given.queries, keys, given.values, POSITIONS, slots, table, kv)

    with pytest.raises(ValueError, match="Keys and values must be"):
        call(keys=given.queries)
    with pytest.raises(ValueError, match="Slots must be"):
        call(slots=SLOTS.int())
    with pytest.raises(ValueError, match="half of at most 16"):
        call(table=rotary_table(64, 10000.0, 64))
