"""The weights of a folder of safetensors files: a header of JSON, then the tensors.

The form is that of huggingface/safetensors' README: eight bytes with the length of the header, the
header by the names of the tensors, and their places after it.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import torch

from engine.backends.torch.weight_source import Matrix
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported

REMEDY = "bring the folder of the model again."
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "BOOL": torch.bool,
}
_MOST_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class _Stored:
    """A tensor of one file, in its bytes [start, end)."""

    file: Path
    type_name: str
    shape: tuple[int, ...]
    start: int
    end: int


class SafetensorsWeights:
    """Of one model, in all files of its folder."""

    notice = ""
    packed_types: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        """Raises the ModelError that says what is wrong with the files."""
        files = weight_files(folder)
        self._found: dict[str, _Stored] = {}
        for file in files:
            self._found |= _read_header(file)

    @property
    def names(self) -> Collection[str]:
        return self._found.keys()

    @property
    def num_bytes(self) -> int:
        return sum(self.size_of(name) for name in self._found)

    @property
    def num_parameters(self) -> int:
        return sum(prod(each.shape) for each in self._found.values())

    @property
    def num_rows(self) -> dict[str, int]:
        return {name: each.shape[0] for name, each in self._found.items() if each.shape}

    @property
    def main_type(self) -> str:
        """The type that most bytes have."""
        counted: dict[str, int] = {}
        for each in self._found.values():
            counted[each.type_name] = counted.get(each.type_name, 0) + each.end - each.start
        return max(counted, key=lambda name: counted[name], default="F32")

    def size_of(self, name: str) -> int:
        return self._found[name].end - self._found[name].start

    def read(self, name: str) -> Matrix:
        each = self._found[name]
        if each.type_name not in _TYPES:
            raise ModelUnsupported(
                f"{each.file.name} has weights of type {each.type_name}, which the torch engine"
                " does not run: bring the model in BF16, or a GGUF file of it."
            )
        data = np.fromfile(each.file, np.uint8, each.end - each.start, offset=each.start)
        tensor = torch.from_numpy(data).view(_TYPES[each.type_name])
        if tensor.numel() != prod(each.shape):
            raise ModelDamaged(f"{each.file.name} breaks off within {name}: {REMEDY}")
        return tensor.reshape(each.shape)


def weight_files(folder: Path) -> list[Path]:
    """Those that the index names, or else all there are. Raises ModelNotFound."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            files = sorted({folder / Path(str(name)).name for name in named})
        except (ValueError, KeyError, AttributeError, RecursionError) as error:
            raise ModelDamaged(f"{index.name} cannot be understood: {REMEDY}") from error
    else:
        files = sorted(folder.glob("*.safetensors"))
    missing = [file.name for file in files if not file.is_file()]
    if missing or not files:
        what = missing[0] if missing else "a safetensors file"
        raise ModelNotFound(f"{what} is missing in {folder}: {REMEDY}")
    return files


def _read_header(file: Path) -> dict[str, _Stored]:
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if not 0 < length <= min(size - 8, _MOST_HEADER_BYTES):
            raise ModelDamaged(f"{file.name} is no whole safetensors file: {REMEDY}")
        raw = opened.read(length)
    found: dict[str, _Stored] = {}
    try:
        for name, each in json.loads(raw).items():
            if name == "__metadata__":
                continue
            start, end = (8 + length + int(place) for place in each["data_offsets"])
            shape = tuple(int(count) for count in each["shape"])
            if not 8 + length <= start <= end <= size:
                raise ModelDamaged(f"{file.name} breaks off within {name}: {REMEDY}")
            found[name] = _Stored(file, str(each["dtype"]), shape, start, end)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelDamaged(f"{file.name} cannot be understood: {REMEDY}") from error
    return found
