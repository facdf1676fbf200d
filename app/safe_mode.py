"""Safe mode: the model with little memory and nothing besides, for when the app keeps crashing."""

import os
from dataclasses import replace

from engine.config import EngineConfig

CONTEXT_TOKENS = 2048
BATCH_TOKENS = 128
NUM_RUNNING = 2
NUM_SEQUENCES = 4
NO_GRAPHICS_CARD = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "HIP_VISIBLE_DEVICES": "-1",
    "GGML_VK_VISIBLE_DEVICES": "",
}
WORDS = (
    f"Safe mode: a context of at most {CONTEXT_TOKENS:,} tokens, no graphics card, no adapters,"
    " no pictures, nothing guessed ahead, nothing from the disk."
)


def safe_config(config: EngineConfig) -> EngineConfig:
    """The same model with less: a damaged store, a draft model or too little room are left out."""
    context = min(config.context_tokens or CONTEXT_TOKENS, CONTEXT_TOKENS)
    return replace(
        config,
        context_tokens=context,
        max_running=NUM_RUNNING,
        max_sequences=NUM_SEQUENCES,
        max_batch_tokens=min(config.max_batch_tokens, BATCH_TOKENS),
        kv_type="f16",
        kv_ram_bytes=0,
        kv_folder=None,
        speculate=False,
        read_forced=False,
        draft_model_path=None,
        adapters=(),
        mmproj_path=None,
    )


def leave_graphics_card() -> None:
    """Call it before a library that could use one is loaded."""
    os.environ.update(NO_GRAPHICS_CARD)
