"""Which operations run as kernels in this process, and why some do not.

A kernel runs where its tensors lie on a card, Triton is there and nothing was found to be wrong
with it on this card. Else its reference runs. Owned by the thread that loads the model.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import torch
from torch import Tensor

from kernels.language import HAS_TRITON, INTERPRETED
from kernels.launch import is_written_down

_reasons: dict[str, str] = {}
_interpreting: list[bool] = []
_referring: list[bool] = []


def takes_kernel(operation: str, tensor: Tensor) -> bool:
    """Whether `operation` runs as a kernel on a tensor that lies where this one does."""
    if is_written_down():
        return True
    if _referring or operation in _reasons or tensor.dtype == torch.float64:
        return False
    if INTERPRETED:
        return bool(_interpreting)
    return HAS_TRITON and tensor.is_cuda


def switch_off(operation: str, reason: str) -> None:
    """From now on its reference runs. `reason`: one sentence for the user."""
    _reasons[operation] = reason


def switch_on(operation: str) -> None:
    """Take back `switch_off`, for a card that was tested anew."""
    _reasons.pop(operation, None)


def switched_off() -> Mapping[str, str]:
    """Operations that run as their references, and why."""
    return MappingProxyType(_reasons)


@contextmanager
def references() -> Iterator[None]:
    """Within it every operation runs its reference: what kernels are compared with."""
    _referring.append(True)
    try:
        yield
    finally:
        _referring.pop()


@contextmanager
def interpreted() -> Iterator[None]:
    """Within it kernels run in the interpreter, which sees tensors of the processor."""
    if not INTERPRETED:
        raise RuntimeError("Kernels are interpreted only in a process with TRITON_INTERPRET=1.")
    _interpreting.append(True)
    try:
        yield
    finally:
        _interpreting.pop()
