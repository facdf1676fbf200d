"""RMSNorm, with and without a residual, over rows and over heads."""

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.norm import rms_norm, rms_norm_reference
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["f32", "f16", "bf16"]
)
WAYS = pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])
EPS = 1e-5


def exact_norm(x: Tensor, weight: Tensor, adds_one: bool = False) -> Tensor:
    numbers, factors = x.double(), weight.double() + adds_one
    return numbers / (numbers.square().mean(-1, keepdim=True) + EPS).sqrt() * factors


def random(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def norm(is_kernel: bool, x: Tensor, weight: Tensor, **options: object) -> Tensor:
    if not is_kernel:
        return rms_norm_reference(x, weight, EPS, **options)
    with interpreted():
        return rms_norm(x, weight, EPS, **options)


@DTYPES
@WAYS
@pytest.mark.parametrize(
    "shape", [(1, 64), (3, 123), (5, 7, 80), (2, 1, 17)], ids=lambda s: "x".join(map(str, s))
)
def test_rows_get_the_size_of_their_weights(
    memory: Memory, is_kernel: bool, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    x, weight = random(*shape, seed=1, dtype=dtype), random(shape[-1], seed=2, dtype=dtype)
    assert_close_to_exact(norm(is_kernel, x, weight), exact_norm(x, weight))


@DTYPES
@WAYS
def test_a_residual_is_added_and_rounded_before_the_norm(
    memory: Memory, is_kernel: bool, dtype: torch.dtype
) -> None:
    x, residual = random(3, 300, seed=1, dtype=dtype), random(3, 300, seed=2, dtype=dtype)
    weight = random(300, seed=3, dtype=dtype)
    normed, total = norm(is_kernel, x, weight, residual=residual)
    assert torch.equal(total, (x.float() + residual.float()).to(dtype))
    assert_close_to_exact(normed, exact_norm(total, weight))


@WAYS
def test_weights_may_be_stored_less_one(memory: Memory, is_kernel: bool) -> None:
    x = random(2, 70, seed=1, dtype=torch.float32)
    weight = random(70, seed=2, dtype=torch.float32)
    assert_close_to_exact(norm(is_kernel, x, weight, adds_one=True), exact_norm(x, weight, True))


@WAYS
def test_heads_may_lie_in_a_wider_row(memory: Memory, is_kernel: bool) -> None:
    wide = random(5, 9, 48, seed=1, dtype=torch.float32)
    weight = random(48, seed=2, dtype=torch.float32)
    assert_close_to_exact(norm(is_kernel, wide[:, 2:6], weight), exact_norm(wide[:, 2:6], weight))


@WAYS
def test_a_row_of_zeros_stays_zeros(memory: Memory, is_kernel: bool) -> None:
    x = torch.zeros(1, 40)
    assert torch.equal(norm(is_kernel, x, torch.ones(40)), x)


def test_arguments_that_do_not_go_together_are_named() -> None:
    with pytest.raises(ValueError, match="as many weights"):
        rms_norm(torch.zeros(2, 8), torch.ones(7), EPS)
    with pytest.raises(ValueError, match="A residual must be like x"):
        rms_norm(torch.zeros(2, 8), torch.ones(8), EPS, residual=torch.zeros(1, 8))
