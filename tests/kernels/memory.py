"""Memory that shows what was written where it should not be, and what was not written at all."""

import math
from typing import Any

import torch
from torch import Tensor

MARGIN = 64

# What a whole number that was never written looks like.
UNWRITTEN = 77


def poison(dtype: torch.dtype) -> float:
    return math.nan if dtype.is_floating_point else UNWRITTEN


class Memory:
    """Stands in for `torch.empty` and `torch.empty_like`."""

    def __init__(self) -> None:
        self._whole: list[Tensor] = []

    def empty(self, *size: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu") -> Tensor:
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return self._guarded(tuple(shape), dtype, device)

    def empty_like(self, x: Tensor, **_: Any) -> Tensor:
        return self._guarded(tuple(x.shape), x.dtype, x.device)

    def guarded(self, x: Tensor) -> Tensor:
        """A copy of `x` with margins."""
        return self._guarded(tuple(x.shape), x.dtype, x.device).copy_(x)

    def check(self) -> None:
        for whole in self._whole:
            margins = torch.cat((whole[:MARGIN], whole[-MARGIN:]))
            wanted = torch.full_like(margins, poison(whole.dtype))
            assert torch.equal(margins.nan_to_num(nan=UNWRITTEN), wanted.nan_to_num(nan=UNWRITTEN))

    def _guarded(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> Tensor:
        size = math.prod(shape)
        whole = torch.full((size + 2 * MARGIN,), poison(dtype), dtype=dtype, device=device)
        if whole.device.type != "meta":
            self._whole.append(whole)
        return whole[MARGIN : MARGIN + size].view(shape)
