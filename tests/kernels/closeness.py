"""A kernel is judged by a float64 answer, its float32 arithmetic and the rounding of its type."""

import torch
from torch import Tensor

# Sums of some hundred products in float32 are off by so many of its units, at most.
ARITHMETIC = 16 * torch.finfo(torch.float32).eps


def assert_close_to_exact(
    actual: Tensor, exact: Tensor, *, rounds_within: torch.dtype = torch.float32
) -> None:
    """`actual` may differ from the exact answer by rounding to its own type, not more.

    `rounds_within`: a type to which something was rounded on the way; that adds half a unit of it
    to the largest numbers, and as much to all others.
    """
    largest = exact.abs().max().item() if exact.numel() else 0.0
    torch.testing.assert_close(
        actual.double(),
        exact.double(),
        rtol=torch.finfo(actual.dtype).eps,
        atol=largest * (ARITHMETIC + torch.finfo(rounds_within).eps / 2),
    )
