"""In which numbers the torch engine keeps K and V."""

from dataclasses import dataclass

import torch

from engine.backends.torch.kv_memory import num_blocks_for
from engine.backends.torch.model_facts import ModelFacts
from kernels.paged_kv import BLOCK_TOKENS

_SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class KVKind:
    """`name` as the user knows it; "q8_0" is int8 with a scale for each token and head."""

    name: str
    dtype: torch.dtype

    def bytes_per_token(self, facts: ModelFacts) -> int:
        scale = _SCALE_BYTES if self.dtype == torch.int8 else 0
        head: int = facts.head_dim * self.dtype.itemsize + scale
        return 2 * facts.num_layers * facts.num_kv_heads * head

    def num_bytes(self, facts: ModelFacts, num_cells: int, num_sequences: int) -> int:
        tokens = num_blocks_for(num_cells, num_sequences) * BLOCK_TOKENS
        return tokens * self.bytes_per_token(facts)


def choose_kind(wanted: str, computed: torch.dtype) -> KVKind:
    """For "auto", "f16" or "q8_0". Auto keeps what was `computed` as it is."""
    if wanted == "q8_0":
        return KVKind("q8_0", torch.int8)
    if wanted == "f16":
        return KVKind("f16", torch.float16)
    return KVKind(str(computed).removeprefix("torch."), computed)
