"""What is tried when memory is too small: less context, coarser KV, the starter."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from app.amounts import counted
from engine.config import DEFAULT_CONTEXT_TOKENS, EngineConfig

SMALLEST = 1024


class Step(NamedTuple):
    """A configuration that takes less, and in what it differs from what was chosen."""

    config: EngineConfig
    change: str


def steps_down(config: EngineConfig, starter: Path | None) -> Iterator[Step]:
    """From the least change to the largest. `starter` None: no other model takes its place."""
    tokens = config.context_tokens or DEFAULT_CONTEXT_TOKENS
    smallest = config
    while tokens > SMALLEST:
        tokens = max(SMALLEST, tokens // 2)
        smallest = replace(config, context_tokens=tokens)
        yield Step(smallest, f"with a context of {counted(tokens, 'token')} instead")
    if config.kv_type != "q8_0":
        yield Step(
            replace(smallest, kv_type="q8_0"),
            f"with a context of {counted(tokens, 'token')}, kept as q8_0, instead",
        )
    if starter is not None and starter != config.model_path:
        small = replace(
            config, model_path=starter, draft_model_path=None, adapters=(), mmproj_path=None
        )
        yield Step(small, "and the starter model took its place")
