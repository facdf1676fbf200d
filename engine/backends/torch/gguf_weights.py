"""The weights of a GGUF file: packed ones as planes, the others as numbers."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.backends.llama_cpp.dequantize import to_float
from engine.backends.llama_cpp.gguf_file import REMEDY
from engine.backends.llama_cpp.gguf_header import GGUFHeader
from engine.backends.llama_cpp.gguf_header import Tensor as Stored
from engine.backends.llama_cpp.split_file import parts_of
from engine.backends.torch.weight_source import Matrix
from engine.errors import ModelDamaged, ModelUnsupported
from kernels.quant.formats import FORMATS, unpacked_notice
from kernels.quant.planes import QuantizedMatrix

_PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# So many numbers are turned into float32 at once on their way to bfloat16.
_PIECE_NUMBERS = 1 << 24


class GGUFWeights:
    """Of one model, in all its files."""

    def __init__(self, path: Path, headers: list[GGUFHeader]) -> None:
        self._found = {
            tensor.name: (part, header.data_start, tensor)
            for part, header in zip(parts_of(path), headers, strict=True)
            for tensor in header.tensors
        }

    @property
    def names(self) -> Collection[str]:
        return self._found.keys()

    @property
    def num_bytes(self) -> int:
        return sum(self.size_of(name) for name in self._found)

    @property
    def num_parameters(self) -> int:
        return sum(tensor.num_numbers for _, _, tensor in self._found.values())

    @property
    def num_rows(self) -> dict[str, int]:
        return {name: tensor.shape[-1] for name, (_, _, tensor) in self._found.items()}

    @property
    def notice(self) -> str:
        counted: Counter[str] = Counter()
        for _, _, tensor in self._found.values():
            counted[tensor.type_name] += tensor.num_numbers
        return unpacked_notice(counted) or ""

    @property
    def packed_types(self) -> tuple[str, ...]:
        found = {tensor.type_name for _, _, tensor in self._found.values()}
        return tuple(name for name in FORMATS if name in found)

    def size_of(self, name: str) -> int:
        return self._found[name][2].num_bytes or 0

    def read(self, name: str) -> Matrix:
        path, data_start, tensor = self._found[name]
        if tensor.num_bytes is None:
            raise ModelUnsupported(
                f"{path.name} has weights of {tensor.type_name}, which are not known here: choose"
                " a file in Q4_K_M or Q8_0."
            )
        data = _read(path, data_start + tensor.offset, tensor.num_bytes)
        shape = tensor.shape[::-1]
        if tensor.type_name in _PLAIN:
            return torch.from_numpy(data).view(_PLAIN[tensor.type_name]).reshape(shape)
        if tensor.type_name in FORMATS and len(shape) == 2:
            return QuantizedMatrix.from_bytes(
                tensor.type_name, shape[0], shape[1], torch.from_numpy(data)
            )
        return _unpacked(tensor, data).reshape(shape)


def _read(path: Path, offset: int, count: int) -> NDArray[np.uint8]:
    data = np.fromfile(path, np.uint8, count, offset=offset)
    if len(data) < count:
        raise ModelDamaged(f"{path.name} breaks off within its weights: {REMEDY}")
    return data


def _unpacked(tensor: Stored, data: NDArray[np.uint8]) -> Tensor:
    """bfloat16, through float32 piece by piece."""
    found = torch.empty(tensor.num_numbers, dtype=torch.bfloat16)
    width = tensor.shape[0]
    row_bytes = len(data) // (tensor.num_numbers // width)
    piece = max(1, _PIECE_NUMBERS // width)
    for row in range(0, tensor.num_numbers // width, piece):
        numbers = to_float(tensor.kind, data[row * row_bytes : (row + piece) * row_bytes], width)
        found[row * width : row * width + numbers.size] = torch.from_numpy(numbers).reshape(-1)
    return found
