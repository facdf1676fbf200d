"""bfloat16 in Triton's interpreter, which keeps it as 16 bits and computes with these as with whole
numbers (Triton 3.6 to 3.9). Here conversions round as torch does, products of matrices are right,
and any other arithmetic is an error: kernels are to compute in float32."""

from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle


def widened(handle: TensorHandle) -> np.ndarray:
    """The numbers of a handle, bfloat16 as float32."""
    if handle.dtype.scalar != tl.bfloat16:
        return handle.data
    return (handle.data.astype(np.uint32) << 16).view(np.float32)


def narrowed(numbers: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16 numbers."""
    rounded = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float32)).bfloat16()
    return rounded.view(torch.int16).numpy().view(np.uint16).reshape(numbers.shape)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = interpreter.InterpreterBuilder
    cast, convert, dot = builder.cast_impl, builder.create_fp_to_fp, builder.create_dot

    def touches(handle: TensorHandle, target: Any) -> bool:
        return tl.bfloat16 in (handle.dtype.scalar, target.scalar)

    def converted(handle: TensorHandle, target: Any) -> TensorHandle:
        numbers = widened(handle)
        if target.scalar == tl.bfloat16:
            return TensorHandle(narrowed(numbers), tl.bfloat16)
        return TensorHandle(numbers.astype(interpreter._get_np_dtype(target.scalar)), target.scalar)

    def cast_impl(self: Any, handle: TensorHandle, target: Any) -> TensorHandle:
        return converted(handle, target) if touches(handle, target) else cast(self, handle, target)

    def create_fp_to_fp(self: Any, handle: TensorHandle, target: Any, mode: Any) -> TensorHandle:
        if touches(handle, target):
            return converted(handle, target)
        return convert(self, handle, target, mode)

    def create_dot(self: Any, a: TensorHandle, b: TensorHandle, *rest: Any) -> TensorHandle:
        wide = [
            TensorHandle(widened(x), tl.float32) if x.dtype.scalar == tl.bfloat16 else x
            for x in (a, b)
        ]
        return dot(self, *wide, *rest)

    def refusing(name: str) -> Any:
        original = getattr(builder, name)

        def compute(self: Any, *arguments: Any) -> TensorHandle:
            if any(
                isinstance(x, TensorHandle) and x.dtype.scalar == tl.bfloat16 for x in arguments
            ):
                raise AssertionError("A kernel computes in bfloat16; it has to be float32.")
            return original(self, *arguments)

        return compute

    monkeypatch.setattr(builder, "cast_impl", cast_impl)
    monkeypatch.setattr(builder, "create_fp_to_fp", create_fp_to_fp)
    monkeypatch.setattr(builder, "create_dot", create_dot)
    for name in ("binary_op", "unary_op"):
        monkeypatch.setattr(builder, name, refusing(name))
