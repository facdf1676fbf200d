"""What the memory of a loaded model costs, what is used of it, and what would fit."""

from dataclasses import dataclass

import psutil

from engine.config import DEFAULT_CONTEXT_TOKENS, EngineConfig
from engine.kv.store import KVUsage
from engine.loading import LoadedModel

KV_SIZES = {"f16": 2.0, "q8_0": 34 / 32}
"""Bytes of one number."""
OWN_BYTES = 3 * 10**8
"""What the app itself has in memory, about."""
SPARE_BYTES = 2**29
"""Left to the rest of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Figures of the model that is loaded. Sizes in bytes, contexts in tokens."""

    model: str
    config: EngineConfig
    num_bytes: int
    trained_context: int
    kv_bytes_per_token: int
    max_request_tokens: int
    usage: KVUsage
    available: int

    @property
    def context_tokens(self) -> int:
        """All conversations together."""
        return self.context_of(self.config.context_tokens)

    @property
    def context_bytes(self) -> int:
        return self.context_tokens * self.kv_bytes_per_token

    def context_of(self, chosen: int | None) -> int:
        """The size of the context under this choice."""
        return chosen or min(self.trained_context, DEFAULT_CONTEXT_TOKENS)

    def bytes_of(self, context_tokens: int, kv_type: str | None = None) -> int:
        """What such a context takes; `kv_type` None: as KV is kept now. "auto" counts as f16,
        which is the most it can take, unless it is what the model has."""
        has = self.config.kv_type
        if kv_type is None or kv_type == has:
            return context_tokens * self.kv_bytes_per_token
        ratio = KV_SIZES.get(kv_type, 2.0) / KV_SIZES.get(has, 2.0)
        return round(context_tokens * self.kv_bytes_per_token * ratio)

    def fits(self, context_tokens: int, kv_type: str | None = None) -> bool:
        """Whether the machine has the memory now, once the present context is given back."""
        more = self.bytes_of(context_tokens, kv_type) - self.context_bytes
        return more <= self.available - SPARE_BYTES


def given_back(memory: Memory, private: int | None = None) -> int:
    """Bytes that are free once this model is gone, besides those that count as free already.

    The pages of a mapped file are such; of weights that were packed anew, the process has a copy
    of its own. `private`: what this process has to itself (None: asked of the system, which does
    not always tell).
    """
    if private is None:
        info = psutil.Process().memory_info()
        private = info.rss - info.shared if hasattr(info, "shared") else 0
    most = memory.num_bytes + memory.context_bytes
    return max(memory.context_bytes, min(most, private - OWN_BYTES))


def memory_of(loaded: LoadedModel, config: EngineConfig) -> Memory:
    info = loaded.info
    return Memory(
        model=info.name,
        config=config,
        num_bytes=info.num_bytes + config.beside_model_bytes,
        trained_context=info.trained_context,
        kv_bytes_per_token=info.kv_bytes_per_token,
        max_request_tokens=loaded.engine.max_request_tokens,
        usage=loaded.engine.kv_usage,
        available=int(psutil.virtual_memory().available),
    )
