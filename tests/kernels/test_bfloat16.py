"""The interpreter's bfloat16 is right where kernels use it, and refused where they must not."""

from typing import Any

import pytest
import torch

from kernels.language import INTERPRETED, constexpr, jit, tensor, tl

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="only the interpreter needs it")


@jit
def product_kernel(a: tensor, b: tensor, c: tensor, SIZE: constexpr) -> None:
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    place = row * SIZE + column
    product = tl.dot(tl.load(a + place), tl.load(b + place))
    tl.store(c + place, product.to(tl.bfloat16))


@jit
def sum_kernel(a: tensor, b: tensor, c: tensor, SIZE: constexpr) -> None:
    place = tl.arange(0, SIZE)
    tl.store(c + place, tl.load(a + place) + tl.load(b + place))


def random_matrices() -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(16, 16, generator=generator).bfloat16() for _ in range(2)]


def test_a_product_of_matrices_is_that_of_torch_rounded_once() -> None:
    a, b = random_matrices()
    c = torch.full((16, 16), torch.nan, dtype=torch.bfloat16)
    product_kernel[(1,)](a, b, c, SIZE=16)
    exact = (a.double() @ b.double()).float()
    torch.testing.assert_close(c.float(), exact, rtol=2**-8, atol=1e-5)


def test_a_sum_in_bfloat16_is_refused() -> None:
    a, b = random_matrices()
    with pytest.raises(Exception, match="has to be float32"):
        sum_kernel[(1,)](a, b, a.clone(), SIZE=16)
