"""What is chosen once, when a model is loaded."""

from dataclasses import dataclass
from pathlib import Path

from engine.adapter import Adapter
from engine.errors import InvalidParams

DEFAULT_CONTEXT_TOKENS = 8192
"""What a model gets unless somebody chooses: about 0.2 GB of KV for the starter model."""


MIN_CONTEXT_TOKENS = 256
MOST_TOKENS = 2**31 - 1
"""llama.cpp counts in whole numbers of four bytes with a sign."""
MOST_THREADS = 512
"""ggml ends the process over more."""
MOST_BYTES = 2**63 - 1
DEFAULT_KV_DISK_BYTES = 10_000_000_000
MOST_ADAPTERS = 2
"""llama.cpp adds up three or more in an order that follows from where they lie in memory: with four
the same prompt had one of five KVs, by the load, and what was kept would not be what is read."""
KV_TYPES = ("auto", "f16", "q8_0")
BACKENDS = ("auto", "llama", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How a model is held and run.

    `context_tokens` is the memory for all conversations together, in tokens (None: what suits
    the model, at most 8,192); one conversation may use all of it, up to what the model was
    trained for. `max_running` requests are computed at once; `max_sequences` conversations are
    held at once. `max_batch_tokens` is the most one step computes. `threads` None: adapted
    while running, up to the physical cores.

    KV is kept as `kv_type`: "f16", "q8_0" (half the memory, coarser), or "auto" (what suits the
    model). What leaves the cells is kept in `kv_ram_bytes` of memory (None: a quarter of what is
    free, at most 4 GB) and, for conversations that may reach the disk, in `kv_disk_bytes` below
    `kv_folder` (None: not on the disk at all). The way to the disk leads through that memory, so 0
    of it keeps nothing.

    `speculate`: guess what comes next from what was said, where that makes answers faster. It does
    not change their distribution. `read_forced`: read together what the form of an answer leaves
    no choice about, instead of computing a step for each token of it. `draft_model_path`: a
    smaller model of the same vocabulary that guesses, too, where nothing was said before.

    `adapters` change what the model answers, all of it; those with a scale of 0 are not loaded.
    `mmproj_path`: the model's multimodal part, with which it reads pictures or sounds.

    `backend`: who computes, "llama" (llama.cpp), "torch" (ours, for NVIDIA cards), or "auto".
    """

    model_path: Path
    context_tokens: int | None = None
    max_running: int = 16
    max_sequences: int = 32
    max_batch_tokens: int = 512
    threads: int | None = None
    kv_type: str = "auto"
    kv_ram_bytes: int | None = None
    kv_disk_bytes: int = DEFAULT_KV_DISK_BYTES
    kv_folder: Path | None = None
    speculate: bool = True
    read_forced: bool = True
    draft_model_path: Path | None = None
    adapters: tuple[Adapter, ...] = ()
    mmproj_path: Path | None = None
    backend: str = "auto"

    def num_cells(self, trained_context: int) -> int:
        """Tokens that fit into the context together, of a model that was trained for so many."""
        return self.context_tokens or min(trained_context, DEFAULT_CONTEXT_TOKENS)

    @property
    def acting_adapters(self) -> tuple[Adapter, ...]:
        return tuple(each for each in self.adapters if each.acts)

    @property
    def adapter_bytes(self) -> int:
        """What they take in memory, about."""
        return sum(each.num_bytes for each in self.acting_adapters)

    @property
    def beside_model_bytes(self) -> int:
        """What the files that go with the model have, about what they take in memory."""
        media = self.mmproj_path
        return self.adapter_bytes + (media.stat().st_size if media and media.is_file() else 0)

    def __post_init__(self) -> None:
        for name, low, high in (
            ("context_tokens", MIN_CONTEXT_TOKENS, MOST_TOKENS),
            ("max_running", 1, MOST_TOKENS),
            ("max_sequences", 1, MOST_TOKENS),
            ("max_batch_tokens", 32, MOST_TOKENS),
            ("threads", 1, MOST_THREADS),
            ("kv_ram_bytes", 0, MOST_BYTES),
            ("kv_disk_bytes", 0, MOST_BYTES),
        ):
            value = getattr(self, name)
            if value is not None and value < low:
                raise InvalidParams(f"{name} must be at least {low}, got {value}.")
            if value is not None and value > high:
                raise InvalidParams(f"{name} must be at most {high}, got {value}.")
        if self.kv_type not in KV_TYPES:
            raise InvalidParams(
                f"kv_type must be one of {', '.join(KV_TYPES)}, got {self.kv_type!r}."
            )
        if self.backend not in BACKENDS:
            raise InvalidParams(
                f"backend must be one of {', '.join(BACKENDS)}, got {self.backend!r}."
            )
        if self.draft_model_path is not None and not self.speculate:
            raise InvalidParams("draft_model_path needs speculate: without it nothing is guessed.")
        if len(self.acting_adapters) > MOST_ADAPTERS:
            raise InvalidParams(
                f"At most {MOST_ADAPTERS} adapters can be used at once, got"
                f" {len(self.acting_adapters)}: leave some out, or give them a scale of 0."
            )
        if len(self.adapters) != len({each.path for each in self.adapters}):
            raise InvalidParams("An adapter was given twice: give it once, with its whole scale.")
        if self.max_sequences > 255:
            raise InvalidParams(f"max_sequences must be at most 255, got {self.max_sequences}.")
        if self.max_running > self.max_sequences:
            raise InvalidParams(
                f"max_running ({self.max_running}) must not exceed max_sequences"
                f" ({self.max_sequences})."
            )
        if self.max_running > self.max_batch_tokens:
            raise InvalidParams(
                f"max_running ({self.max_running}) must not exceed max_batch_tokens"
                f" ({self.max_batch_tokens}): each running request needs a place in the batch."
            )
