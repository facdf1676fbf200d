"""In which numbers K and V are kept, and what they take."""

from dataclasses import dataclass
from typing import Final, Literal

from engine.backends.llama_cpp.library import bindings
from engine.errors import InvalidParams

KVType = Literal["f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]
"""A model is held in the first two; the others are for measuring what they would cost."""

GGML_TYPES: Final[dict[KVType, int]] = {
    "f16": bindings.GGML_TYPE_F16,
    "q8_0": bindings.GGML_TYPE_Q8_0,
    "q5_1": bindings.GGML_TYPE_Q5_1,
    "q5_0": bindings.GGML_TYPE_Q5_0,
    "q4_1": bindings.GGML_TYPE_Q4_1,
    "q4_0": bindings.GGML_TYPE_Q4_0,
}
_BLOCK_NUMBERS = 32
# A block is a scale of two bytes, in some types an offset of two more, and the bits of each number.
_BLOCK_BYTES: Final[dict[KVType, int]] = {
    "f16": 64,
    "q8_0": 34,
    "q5_1": 24,
    "q5_0": 22,
    "q4_1": 20,
    "q4_0": 18,
}
HEAVY_BYTES = 64 * 1024
"""What is heavier for each token in f16 is kept in q8_0, unless the user chose."""


@dataclass(frozen=True, slots=True)
class KVDimensions:
    """Of one token: in each layer, each KV head has `key_size` and `value_size` numbers."""

    num_layers: int
    num_heads: int
    key_size: int
    value_size: int

    @property
    def num_numbers(self) -> int:
        return self.num_layers * self.num_heads * (self.key_size + self.value_size)


@dataclass(frozen=True, slots=True)
class KVShape:
    """The K and V of one token over all layers.

    Not `is_exact`: an upper bound, because some layers have none.
    """

    num_numbers: int
    head_sizes: frozenset[int]
    is_exact: bool

    def bytes_per_token(self, kv_type: KVType) -> int:
        return self.num_numbers * _BLOCK_BYTES[kv_type] // _BLOCK_NUMBERS

    def choose(self, wanted: str) -> KVType:
        """The type for "auto", "f16" or "q8_0". Raises when the heads have no room for it."""
        can_be_q8 = all(size % _BLOCK_NUMBERS == 0 for size in self.head_sizes)
        if wanted == "q8_0" and not can_be_q8:
            sizes = " and ".join(map(str, sorted(self.head_sizes)))
            raise InvalidParams(
                f"The heads of this model have {sizes} numbers, and q8_0 needs a multiple of"
                f" {_BLOCK_NUMBERS}: choose f16 or auto for the KV."
            )
        is_heavy = self.is_exact and self.bytes_per_token("f16") > HEAVY_BYTES
        is_q8 = wanted == "q8_0" or (wanted == "auto" and is_heavy and can_be_q8)
        return "q8_0" if is_q8 else "f16"
