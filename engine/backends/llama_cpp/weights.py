"""What the weights of a GGUF file are, tensor by tensor, and what a token does with them.

Read from the head of the file alone: its tensors are listed there with their shapes and types. The
layout is that of GGUF version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

import mmap
import re
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from struct import calcsize, unpack_from
from struct import error as OutOfBounds
from typing import Final

from engine.backends.llama_cpp.gguf_file import FORMATS, REMEDY, check_file, read_string
from engine.errors import ModelDamaged

BLOCKS: Final[dict[int, tuple[str, int, int]]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    20: ("IQ4_NL", 32, 18),
    23: ("IQ4_XS", 256, 136),
    30: ("BF16", 1, 2),
    39: ("MXFP4", 32, 17),
}
"""By the number in the file: the name, the numbers in a block, and its bytes."""
_STRING, _ARRAY = 8, 9
_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"


@dataclass(frozen=True, slots=True)
class Tensor:
    """`shape` as in the file: the width of a row first. `num_bytes` None: a type we do not know."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    num_bytes: int | None

    @property
    def num_numbers(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """All tensors of a file. Of the experts of a mixture, a token meets `experts_used` of `experts`
    (1 of 1 where there are none)."""

    tensors: tuple[Tensor, ...]
    experts_used: int = 1
    experts: int = 1

    @property
    def main_type(self) -> str:
        """The type that most bytes of the matrices have."""
        counted: Counter[str] = Counter()
        for each in self._matrices():
            counted[each.type_name] += each.num_bytes or 0
        return counted.most_common(1)[0][0] if counted else "F32"

    @property
    def layer_multiply_adds(self) -> float:
        """For each token that is read: a multiplication and an addition for each weight."""
        return sum(each.num_numbers * self._share(each) for each in self._layers())

    @property
    def head_multiply_adds(self) -> int:
        """For each token after which another one is written, besides."""
        head = self._head()
        return 0 if head is None else head.num_numbers

    @property
    def bytes_of_a_step(self) -> float:
        """What a step of one token reads of the weights; of the experts only those it meets."""
        head = self._head()
        layers = sum((each.num_bytes or 0) * self._share(each) for each in self._layers())
        return layers + (0 if head is None else head.num_bytes or 0)

    def _matrices(self) -> list[Tensor]:
        return [each for each in self.tensors if len(each.shape) >= 2 and prod(each.shape[1:]) > 1]

    def _layers(self) -> list[Tensor]:
        return [each for each in self._matrices() if each.name not in (_EMBEDDING, _HEAD)]

    def _head(self) -> Tensor | None:
        """Where a file has none of its own, the embedding is the head, too."""
        named = {each.name: each for each in self.tensors}
        return named.get(_HEAD) or named.get(_EMBEDDING)

    def _share(self, tensor: Tensor) -> float:
        return self.experts_used / self.experts if "_exps" in tensor.name else 1.0


def read_weights(path: Path) -> Weights:
    """Raises the ModelError that says why the file cannot be read."""
    check_file(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _read(data)
        except (OutOfBounds, KeyError, UnicodeDecodeError) as error:
            raise ModelDamaged(
                f"{path.name} is cut off or damaged at {len(data):,} bytes: {REMEDY}"
            ) from error


def _read(data: mmap.mmap) -> Weights:
    num_tensors, num_entries = unpack_from("<QQ", data, 8)
    counts: dict[str, int] = {}
    position = 24
    for _ in range(num_entries):
        key, position = read_string(data, position)
        (kind,) = unpack_from("<I", data, position)
        position += 4
        if kind == _ARRAY:
            kind, length = unpack_from("<IQ", data, position)
            position += 12
            if kind == _STRING:
                for _ in range(length):
                    _, position = read_string(data, position)
            else:
                position += calcsize(FORMATS[kind]) * length
        elif kind == _STRING:
            _, position = read_string(data, position)
        else:
            found = re.search(rb"\.(expert_count|expert_used_count)$", key)
            if found:
                (counts[found[1].decode()],) = unpack_from("<" + FORMATS[kind], data, position)
            position += calcsize(FORMATS[kind])
    tensors = []
    for _ in range(num_tensors):
        name, position = read_string(data, position)
        (num_dimensions,) = unpack_from("<I", data, position)
        shape = unpack_from(f"<{num_dimensions}Q", data, position + 4)
        (kind,) = unpack_from("<I", data, position + 4 + 8 * num_dimensions)
        position += 4 + 8 * num_dimensions + 4 + 8
        tensors.append(_tensor(name.decode(), kind, shape))
    experts = counts.get("expert_count", 0)
    if not experts:
        return Weights(tuple(tensors))
    return Weights(tuple(tensors), counts.get("expert_used_count", 0) or experts, experts)


def _tensor(name: str, kind: int, shape: tuple[int, ...]) -> Tensor:
    type_name, numbers, num_bytes = BLOCKS.get(kind, (f"type {kind}", 1, 0))
    size = prod(shape) // numbers * num_bytes if num_bytes else None
    return Tensor(name, type_name, shape, size)
