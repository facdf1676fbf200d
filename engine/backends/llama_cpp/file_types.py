"""What the weights of a model file can be rounded to, and what such a file takes.

Loads no library, so that wrong use is told at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.backends.llama_cpp.gguf_header import BLOCKS
from engine.backends.llama_cpp.weights import Weights

FILE_TYPES: Final[Mapping[str, tuple[int, str]]] = {
    "F32": (0, "F32"),
    "F16": (1, "F16"),
    "BF16": (32, "BF16"),
    "Q8_0": (7, "Q8_0"),
    "Q6_K": (18, "Q6_K"),
    "Q5_K_M": (17, "Q6_K"),
    "Q5_K_S": (16, "Q5_K"),
    "Q5_1": (9, "Q5_1"),
    "Q5_0": (8, "Q5_1"),
    "Q4_K_M": (15, "Q5_K"),
    "Q4_K_S": (14, "Q5_K"),
    "Q4_1": (3, "Q4_1"),
    "Q4_0": (2, "Q4_1"),
    "IQ4_NL": (25, "Q5_0"),
    "IQ4_XS": (30, "Q5_0"),
    "Q3_K_L": (13, "Q5_K"),
    "Q3_K_M": (12, "Q4_K"),
    "Q3_K_S": (11, "Q4_K"),
    "Q2_K": (10, "Q4_K"),
}
"""What a file can be made: llama.cpp's number for it, and a type that is no smaller than the
average of those it mixes, for asking beforehand whether the disk has the room."""
WHOLE_TYPES = ("F32", "F16", "BF16")
# The embedding or the head keeps more bits in some files, and rows of odd widths take other types.
ROOM_FACTOR = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized:
    """What became of a file. Sizes in bytes."""

    bytes_before: int
    bytes_after: int
    bits_per_weight: float


def is_quantized(weights: Weights) -> bool:
    """Whether any of its matrices has been rounded to fewer bits already."""
    return any(
        len(each.shape) >= 2 and each.type_name not in WHOLE_TYPES for each in weights.tensors
    )


def size_as(weights: Weights, type_name: str) -> int:
    """About how many bytes a file of this type will have, rather too many."""
    blocks = {each.name: each.num_bytes / each.num_numbers for each in BLOCKS.values()}
    each = blocks[FILE_TYPES[type_name][1]]
    matrices = [tensor.num_numbers for tensor in weights.tensors if len(tensor.shape) >= 2]
    others = [tensor.num_bytes or 0 for tensor in weights.tensors if len(tensor.shape) < 2]
    return int(ROOM_FACTOR * (each * sum(matrices) + sum(others))) + 16 * 2**20
