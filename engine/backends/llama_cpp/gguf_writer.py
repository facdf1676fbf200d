"""A GGUF file, written: its values in their order, then its tensors as bytes.

The form is that of ggml's docs/gguf.md, as in `gguf_header`, which reads it.
"""

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.gguf_header import MAGIC

VERSION: Final = 3
ALIGNMENT: Final = 32
F32, Q4_0, Q8_0 = 0, 2, 8
BLOCK: Final = 32
"""Numbers that share a scale in Q4_0 and Q8_0."""

_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9

Written = str | bool | int | float | Sequence[str] | Sequence[int] | Sequence[float]


class WrittenTensor(NamedTuple):
    """`shape` as in the file, the width of a row first; `kind` is ggml's number of its type."""

    name: str
    shape: tuple[int, ...]
    kind: int
    data: bytes


def f32_tensor(name: str, values: NDArray[np.float32]) -> WrittenTensor:
    """Of an array `[..., width]`."""
    return WrittenTensor(name, values.shape[::-1], F32, np.ascontiguousarray(values).tobytes())


def q8_tensor(name: str, values: NDArray[np.float32]) -> WrittenTensor:
    """Of an array `[num_rows, width]`, whose width is a multiple of 32."""
    blocks = np.ascontiguousarray(values).reshape(-1, BLOCK)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    steps = np.divide(blocks, scales, out=np.zeros_like(blocks), where=scales > 0)
    # A half of a step goes away from zero, as in ggml.
    rounded = np.trunc(steps + np.copysign(np.float32(0.5), steps)).astype(np.int8)
    data = np.empty((len(blocks), 2 + BLOCK), np.uint8)
    data[:, :2] = scales.astype(np.float16).view(np.uint8)
    data[:, 2:] = rounded.view(np.uint8)
    return WrittenTensor(name, values.shape[::-1], Q8_0, data.tobytes())


def write_gguf(path: Path, values: Mapping[str, Written], tensors: Sequence[WrittenTensor]) -> None:
    """There under its name only when it is whole. Raises OSError."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            for piece in _pieces(values, tensors):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _pieces(values: Mapping[str, Written], tensors: Sequence[WrittenTensor]) -> Iterator[bytes]:
    head = bytearray(MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(values)))
    for key, value in values.items():
        head += _text(key) + _entry(value)
    offset = 0
    for name, shape, kind, data in tensors:
        head += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", kind, offset)
        offset += _padded(len(data))
    yield bytes(head).ljust(_padded(len(head)), b"\0")
    for tensor in tensors:
        yield tensor.data.ljust(_padded(len(tensor.data)), b"\0")


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _entry(value: Written) -> bytes:
    match value:
        case str():
            return struct.pack("<I", _STRING) + _text(value)
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _U32, value)
        case float():
            return struct.pack("<If", _F32, value)
    head = struct.pack("<I", _ARRAY)
    if all(isinstance(each, str) for each in value):
        return (
            head + struct.pack("<IQ", _STRING, len(value)) + b"".join(map(_text, map(str, value)))
        )
    kind, form = (_I32, "i") if all(isinstance(each, int) for each in value) else (_F32, "f")
    return head + struct.pack(f"<IQ{len(value)}{form}", kind, len(value), *value)
