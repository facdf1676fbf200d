"""The one door to a kernel: it runs what it is given, or writes down what would have run.

Written down, a launch says all that decides which machine code is needed. So the list of what a
model needs is made by calling the operations on tensors without memory (device "meta"), and cannot
differ from what will be called.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.card import Card, assumed
from kernels.language import Kernel

TYPES = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
}


@dataclass(frozen=True, slots=True)
class Spec:
    """One build of a kernel. `types`: arguments and Triton's types; `aligned`: those that are
    known to be multiples of 16; `constants`: what is built in."""

    kernel: Kernel
    types: tuple[tuple[str, str], ...]
    aligned: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]
    num_warps: int
    num_stages: int

    @property
    def name(self) -> str:
        return str(getattr(self.kernel, "__name__", "kernel"))


@dataclass(frozen=True, slots=True)
class Launch:
    spec: Spec
    grid: tuple[int, ...]


@dataclass(slots=True)
class _Sink:
    launches: list[Launch]
    runs: bool


_sinks: list[_Sink] = []


def is_written_down() -> bool:
    """Whether launches are only written down: then tensors have no numbers."""
    return any(not sink.runs for sink in _sinks)


def launch(
    kernel: Kernel,
    grid: tuple[int, ...],
    arguments: Mapping[str, Any],
    constants: Mapping[str, Any],
    *,
    num_warps: int = 4,
    num_stages: int = 2,
    counts: tuple[str, ...] = (),
) -> None:
    """Run `kernel` on `grid`. `counts`: arguments that no build depends on."""
    if _sinks:
        spec = _spec_of(kernel, arguments, constants, num_warps, num_stages, counts)
        for sink in _sinks:
            sink.launches.append(Launch(spec, grid))
        if is_written_down():
            return
    if 0 in grid:
        return
    kernel[grid](**arguments, **constants, num_warps=num_warps, num_stages=num_stages)


@contextmanager
def written_down(card: Card) -> Iterator[list[Launch]]:
    """What would run on `card`; nothing does."""
    launches: list[Launch] = []
    with assumed(card):
        _sinks.append(_Sink(launches, runs=False))
        try:
            yield launches
        finally:
            _sinks.pop()


@contextmanager
def observed() -> Iterator[list[Launch]]:
    """What runs meanwhile."""
    launches: list[Launch] = []
    _sinks.append(_Sink(launches, runs=True))
    try:
        yield launches
    finally:
        _sinks.pop()


def _spec_of(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    constants: Mapping[str, Any],
    num_warps: int,
    num_stages: int,
    counts: tuple[str, ...],
) -> Spec:
    types, aligned = [], []
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            types.append((name, f"*{TYPES[value.dtype]}"))
            aligned.append(name)
        elif isinstance(value, float):
            types.append((name, "fp32"))
        elif isinstance(value, int):
            types.append((name, "i32"))
            if value % 16 == 0 and name not in counts:
                aligned.append(name)
        else:
            raise TypeError(f"{name} of a kernel is a {type(value).__name__}.")
    return Spec(
        kernel,
        tuple(types),
        tuple(aligned),
        tuple(constants.items()),
        num_warps,
        num_stages,
    )
