"""The seven GGUF types that our kernels read as they are: what a block of bytes holds, and where.

A row of a matrix is a row of blocks; a block holds 32 or 256 neighbouring columns. Facts: GGML's
`ggml-common.h` and the `gguf` package, whose `quants` is the oracle of the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """A stretch of every block that is kept apart from the others, so that loads are aligned."""

    name: str
    start: int  # in bytes, within the block
    num_bytes: int
    dtype: str  # what torch calls one element of it


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantFormat:
    """One type. The planes follow one another and cover the block.

    `group`: 4-bit types keep two groups of so many neighbouring columns in as many bytes, the
    first in the low nibbles, the second in the high ones. For Q8_0 it is half a block.
    """

    name: str
    block_columns: int
    block_bytes: int
    group: int
    planes: tuple[Plane, ...]

    @property
    def bits_per_weight(self) -> float:
        return self.block_bytes * 8 / self.block_columns

    def row_bytes(self, num_columns: int) -> int:
        """Of a row in the file. ValueError where it is no whole number of blocks."""
        if num_columns <= 0 or num_columns % self.block_columns:
            raise ValueError(
                f"{self.name} holds {self.block_columns} columns in a block,"
                f" and {num_columns:,} columns are no multiple of that."
            )
        return num_columns // self.block_columns * self.block_bytes


def _format(
    name: str, block_columns: int, group: int, *planes: tuple[str, int, str]
) -> QuantFormat:
    made: list[Plane] = []
    start = 0
    for plane, num_bytes, dtype in planes:
        made.append(Plane(name=plane, start=start, num_bytes=num_bytes, dtype=dtype))
        start += num_bytes
    return QuantFormat(
        name=name,
        block_columns=block_columns,
        block_bytes=start,
        group=group,
        planes=tuple(made),
    )


# `scales` of Q4_1 are pairs (scale, minimum). Of Q4_K and Q5_K they are eight half words: scale
# and minimum of the block, bits of float16, then twelve bytes with 6-bit scales and minimums of its
# eight sub-blocks.
FORMATS: Mapping[str, QuantFormat] = {
    made.name: made
    for made in (
        _format("Q8_0", 32, 16, ("scales", 2, "float16"), ("low", 32, "int32")),
        _format("Q4_0", 32, 16, ("scales", 2, "float16"), ("low", 16, "int32")),
        _format("Q4_1", 32, 16, ("scales", 4, "float16"), ("low", 16, "int32")),
        _format(
            "Q5_0",
            32,
            16,
            ("scales", 2, "float16"),
            ("high", 4, "int32"),
            ("low", 16, "int32"),
        ),
        _format("Q4_K", 256, 32, ("scales", 16, "int16"), ("low", 128, "int32")),
        _format(
            "Q5_K",
            256,
            32,
            ("scales", 16, "int16"),
            ("high", 32, "int32"),
            ("low", 128, "int32"),
        ),
        _format(
            "Q6_K",
            256,
            64,
            ("low", 128, "int32"),
            ("high", 64, "int32"),
            ("subscales", 16, "int8"),
            ("scales", 2, "float16"),
        ),
    )
}


def format_of(type_name: str) -> QuantFormat:
    """ValueError for a type that is not kept packed."""
    if type_name not in FORMATS:
        raise ValueError(f"{type_name} is none of the packed types: {', '.join(FORMATS)}.")
    return FORMATS[type_name]


# What GGUF calls numbers that are no blocks.
PLAIN = frozenset({"F64", "F32", "F16", "BF16", "I8", "I16", "I32", "I64"})


def unpacked_notice(num_weights: Mapping[str, int]) -> str | None:
    """What to tell about weights that become bfloat16 at load, by their type; None: there are none.

    `num_weights` counts the weights of a file by type, all of them or only these.
    """
    others = sorted(name for name, count in num_weights.items() if count and _unpacks(name))
    if not others:
        return None
    total = sum(num_weights[name] for name in others)
    return (
        f"{total:,} weights of this file are of type {', '.join(others)}, which the GPU engine"
        f" cannot keep packed: they take {2 * total / 1e6:,.1f} MB as bfloat16."
        " A file in Q4_K_M or Q8_0 takes less."
    )


def _unpacks(type_name: str) -> bool:
    return type_name not in FORMATS and type_name not in PLAIN
