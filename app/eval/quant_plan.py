"""What `eval quant` will make of a model, said and checked against the disk before it begins."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from app.amounts import bytes_in_words, counted, duration
from app.machine.rates import Rates
from app.models.part_file import SPARE_BYTES
from engine.backends.llama_cpp.file_types import is_quantized, size_as
from engine.backends.llama_cpp.weights import Weights
from engine.errors import UsageError

WHOLE = "F16"
"""What a quantised file is written out as, to be the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`made` are the types of the files that are made, `num_readings` the forms that read
    `num_tokens` each. `num_bytes` is what all of it takes on the disk, rather too much."""

    made: tuple[str, ...]
    num_readings: int
    num_tokens: int
    num_bytes: int
    multiply_adds: float

    @classmethod
    def of(
        cls,
        weights: Weights,
        types: Sequence[str],
        kv_types: Sequence[str],
        window: int,
        most_windows: int,
    ) -> "Plan":
        is_again = is_quantized(weights)
        reference = WHOLE if is_again else weights.main_type
        made = [WHOLE] if is_again else []
        # Of a quantised file only what is written out is a reference, as `_forms` has it.
        made += [name for name in types if is_again or name != reference]
        others = sum(kv_type != "f16" for kv_type in kv_types)
        num_readings = 1 + len(made) + others
        embedding = next((e.shape for e in weights.tensors if e.name == "token_embd.weight"), ())
        rows = most_windows * (window - window // 2)
        kept = rows * prod(embedding[1:]) * np.dtype(np.float32).itemsize
        tokens = most_windows * window
        reading = tokens * weights.layer_multiply_adds + rows * weights.head_multiply_adds
        return cls(
            made=tuple(made),
            num_readings=num_readings,
            num_tokens=tokens,
            num_bytes=sum(size_as(weights, name) for name in made) + kept,
            multiply_adds=num_readings * reading,
        )

    def words(self, name: str, folder: Path, rates: Rates) -> str:
        """What will be done, as sentences."""
        files = counted(len(self.made), "file")
        listed = f" ({', '.join(self.made)})" if self.made else ""
        took = duration(self.multiply_adds / rates.multiply_adds_per_s)
        return (
            f"Of {name} {files}{listed} will be made in {folder}, with up to"
            f" {bytes_in_words(self.num_bytes)} until the end, when all of it is removed. Up to"
            f" {counted(self.num_tokens, 'token')} are read {self.num_readings} times: about"
            f" {took} where nothing else is at work."
        )

    def check_room(self, folder: Path) -> None:
        """Raises UsageError where the disk has too little."""
        free = shutil.disk_usage(folder).free
        if self.num_bytes + SPARE_BYTES > free:
            raise UsageError(
                f"This needs up to {bytes_in_words(self.num_bytes)} for a while, and"
                f" {bytes_in_words(free)} are free where {folder} lies: choose another place with"
                " --folder, or fewer forms with --types."
            )
