"""Random matrices of every packed type, and what `gguf` says they are."""

import functools
from dataclasses import dataclass

import gguf
import numpy as np
import torch
from torch import Tensor

from kernels.quant.formats import FORMATS
from kernels.quant.planes import QuantizedMatrix

TYPES = tuple(FORMATS)

# So many float16 begin the scales of a block; the rest of it may be any bits.
NUM_FLOATS = {"Q4_1": 2, "Q4_K": 2, "Q5_K": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """`data` uint8 [num_rows, bytes of a row]: the file; `exact` float32: its numbers."""

    data: Tensor
    matrix: QuantizedMatrix
    exact: Tensor


@functools.cache
def packed(type_name: str, num_rows: int, num_columns: int) -> Packed:
    """Any quants, and scales of all sizes and signs."""
    form = FORMATS[type_name]
    generator = np.random.default_rng(num_rows * num_columns)
    num_blocks = num_columns // form.block_columns
    blocks = generator.integers(0, 256, (num_rows, num_blocks, form.block_bytes), dtype=np.uint8)
    (start,) = (plane.start for plane in form.planes if plane.name == "scales")
    count = NUM_FLOATS.get(type_name, 1)
    floats = generator.normal(size=(num_rows, num_blocks, count)).astype(np.float16)
    blocks[:, :, start : start + 2 * count] = floats.view(np.uint8)
    rows = blocks.reshape(num_rows, -1)
    data = torch.from_numpy(rows)
    return Packed(
        data=data,
        matrix=QuantizedMatrix.from_bytes(type_name, num_rows, num_columns, data),
        exact=torch.from_numpy(oracle(type_name, rows)),
    )


def oracle(type_name: str, rows: np.ndarray) -> np.ndarray:
    return gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[type_name])


def odd_columns(type_name: str) -> int:
    """A row of few blocks, whose number is odd."""
    return 3 * 256 if FORMATS[type_name].block_columns == 256 else 9 * 32


def vectors(num_tokens: int, num_columns: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(num_tokens)
    return torch.randn(num_tokens, num_columns, generator=generator).to(dtype)
