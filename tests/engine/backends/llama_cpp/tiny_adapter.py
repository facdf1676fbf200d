"""Small LoRA files for the tiny models."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from tests.engine.backends.llama_cpp.tiny_model import WIDTH

CHANGED = {
    "blk.0.attn_k.weight": (WIDTH, WIDTH),
    "blk.1.attn_v.weight": (WIDTH, WIDTH),
    "blk.0.ffn_down.weight": (2 * WIDTH, WIDTH),
}
"""What is changed, and how many numbers go in and come out."""


def write_tiny_adapter(
    path: Path,
    seed: int = 0,
    *,
    architecture: str = "llama",
    rank: int = 4,
    changed: Mapping[str, tuple[int, int]] = CHANGED,
    facts: Mapping[str, str] | None = None,
    left_out: str = "",
    added: Mapping[str, tuple[int, ...]] | None = None,
) -> Path:
    """`facts` go before what an adapter says of itself; `left_out` is a tensor that is missing,
    `added` are tensors besides, with their sizes in numpy's order."""
    writer = gguf.GGUFWriter(path, architecture)
    says = {"general.type": "adapter", "adapter.type": "lora"} | dict(facts or {})
    for name, text in says.items():
        writer.add_string(name, text)
    writer.add_float32("adapter.lora.alpha", 2.0 * rank)
    generator = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (num_in, num_out) in changed.items():
        shapes |= {f"{name}.lora_a": (rank, num_in), f"{name}.lora_b": (num_out, rank)}
    for name, shape in (shapes | dict(added or {})).items():
        if name != left_out:
            numbers = generator.standard_normal(shape) / 4
            writer.add_tensor(name, numbers.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
