"""The header of a GGUF file, read without llama.cpp: what the file says of itself, its tensors.

The form is that of ggml's docs/gguf.md. The weights are not touched, so it takes milliseconds for
a file of any size, and a file that breaks off is known by what its tensors would need.
"""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from struct import Struct, calcsize, unpack_from
from struct import error as OutOfBounds
from typing import Final, NamedTuple

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)

Value = str | int | float | bool | tuple[int | float | bool, ...]

_STRING, _ARRAY = 8, 9
FORMATS: Final = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_LENGTH = Struct("<Q").unpack_from
_LONGEST_KEPT = 1024
"""Longer lists are vocabularies; a list over the layers is kept."""
_MOST_DIMENSIONS = 8


class Block(NamedTuple):
    """So many numbers of a type take so many bytes."""

    name: str
    num_numbers: int
    num_bytes: int


BLOCKS: Final[Mapping[int, Block]] = {
    0: Block("F32", 1, 4),
    1: Block("F16", 1, 2),
    2: Block("Q4_0", 32, 18),
    3: Block("Q4_1", 32, 20),
    6: Block("Q5_0", 32, 22),
    7: Block("Q5_1", 32, 24),
    8: Block("Q8_0", 32, 34),
    10: Block("Q2_K", 256, 84),
    11: Block("Q3_K", 256, 110),
    12: Block("Q4_K", 256, 144),
    13: Block("Q5_K", 256, 176),
    14: Block("Q6_K", 256, 210),
    15: Block("Q8_K", 256, 292),
    16: Block("IQ2_XXS", 256, 66),
    17: Block("IQ2_XS", 256, 74),
    18: Block("IQ3_XXS", 256, 98),
    19: Block("IQ1_S", 256, 50),
    20: Block("IQ4_NL", 32, 18),
    21: Block("IQ3_S", 256, 110),
    22: Block("IQ2_S", 256, 82),
    23: Block("IQ4_XS", 256, 136),
    24: Block("I8", 1, 1),
    25: Block("I16", 1, 2),
    26: Block("I32", 1, 4),
    27: Block("I64", 1, 8),
    28: Block("F64", 1, 8),
    29: Block("IQ1_M", 256, 56),
    30: Block("BF16", 1, 2),
    34: Block("TQ1_0", 256, 54),
    35: Block("TQ2_0", 256, 66),
    39: Block("MXFP4", 32, 17),
}
"""By ggml's number of the type."""


class BrokenHeader(Exception):
    """The bytes are not what the form demands."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` as in the file, the width of a row first; `kind` is ggml's number of its type, and
    `num_bytes` is None where that is not known here. `offset` counts from the first tensor."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int = 0

    @property
    def num_numbers(self) -> int:
        return prod(self.shape)

    @property
    def type_name(self) -> str:
        block = BLOCKS.get(self.kind)
        return f"type {self.kind}" if block is None else block.name

    @property
    def num_bytes(self) -> int | None:
        block = BLOCKS.get(self.kind)
        if block is None:
            return None
        return -(-self.num_numbers // block.num_numbers) * block.num_bytes


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """`lengths` are those of all lists; lists of texts and long ones are not among `values`."""

    version: int
    values: Mapping[str, Value]
    lengths: Mapping[str, int]
    tensors: tuple[Tensor, ...]
    data_start: int

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    def text(self, key: str) -> str:
        """On one line and fit to be shown: a file may come from anybody."""
        value = self.values.get(key)
        return _printable(value) if isinstance(value, str) else ""

    def number(self, key: str, default: int = 0) -> int:
        """The number there, or the largest of a list; the default where it is not finite."""
        value = self.values.get(key)
        if isinstance(value, tuple):
            value = max(value, default=default)
        return int(value) if isinstance(value, int | float) and isfinite(value) else default

    def own(self, key: str, default: int = 0) -> int:
        """`number` of a key that begins with the name of the architecture."""
        return self.number(f"{self.architecture}.{key}", default)

    @property
    def needed_bytes(self) -> int:
        """How long the file must be for all tensors whose size is known; 0 without any."""
        if not self.tensors:
            # No place for the first of them has to be there.
            return 0
        ends = [each.offset + (each.num_bytes or 0) for each in self.tensors]
        return self.data_start + max(ends, default=0)


def read_header(path: Path) -> GGUFHeader:
    """Raises OSError, or BrokenHeader where it is no GGUF of a version that is read here."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise BrokenHeader("it is no GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).header()
            except (OutOfBounds, KeyError, UnicodeDecodeError, OverflowError) as error:
                raise BrokenHeader(f"it breaks off within {len(data):,} bytes") from error


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


class _Reader:
    """Goes once from the beginning to the end of a header."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 4

    def header(self) -> GGUFHeader:
        version = int(self._take("I"))
        if version not in VERSIONS:
            raise BrokenHeader(f"it is of version {version}")
        num_tensors, num_entries = int(self._take("Q")), int(self._take("Q"))
        values: dict[str, Value] = {}
        lengths: dict[str, int] = {}
        for _ in range(num_entries):
            key = self._text()
            kind = int(self._take("I"))
            if kind == _ARRAY:
                kind, count = int(self._take("I")), int(self._take("Q"))
                lengths[key] = count
                if kind == _STRING:
                    self._skip_texts(count)
                else:
                    kept = self._numbers(kind, count)
                    if kept is not None:
                        values[key] = kept
            elif kind == _STRING:
                values[key] = self._text()
            else:
                values[key] = self._take(FORMATS[kind])
        tensors = tuple(self._tensor() for _ in range(num_tensors))
        alignment = values.get("general.alignment", 32)
        size = alignment if isinstance(alignment, int) and alignment > 0 else 32
        return GGUFHeader(version, values, lengths, tensors, -(-self._at // size) * size)

    def _take(self, form: str) -> int | float | bool:
        (value,) = unpack_from("<" + form, self._data, self._at)
        self._at += calcsize(form)
        return value  # type: ignore[no-any-return]

    def _text(self) -> str:
        length = int(self._take("Q"))
        end = self._at + length
        if end > len(self._data):
            raise OutOfBounds
        text = self._data[self._at : end].decode("utf-8", "replace")
        self._at = end
        return text

    def _skip_texts(self, count: int) -> None:
        data, at, end = self._data, self._at, len(self._data)
        for _ in range(count):
            at += 8 + _LENGTH(data, at)[0]
            if at > end:
                raise OutOfBounds
        self._at = at

    def _numbers(self, kind: int, count: int) -> tuple[int | float | bool, ...] | None:
        size = calcsize(FORMATS[kind])
        at, self._at = self._at, self._at + size * count
        if self._at > len(self._data):
            raise OutOfBounds
        if count > _LONGEST_KEPT:
            return None
        return unpack_from(f"<{count}{FORMATS[kind]}", self._data, at)

    def _tensor(self) -> Tensor:
        name = _printable(self._text())
        num_dimensions = int(self._take("I"))
        if num_dimensions > _MOST_DIMENSIONS:
            raise OutOfBounds
        shape = tuple(int(self._take("Q")) for _ in range(num_dimensions))
        kind, offset = int(self._take("I")), int(self._take("Q"))
        return Tensor(name, shape, kind, offset)
