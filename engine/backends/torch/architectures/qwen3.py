"""Qwen3: the heads of Q and K have norms of their own, before they turn."""

from engine.backends.torch.architecture import (
    GGUF_HEAD_NORMS,
    GGUF_PARTS,
    SAFETENSORS_HEAD_NORMS,
    SAFETENSORS_PARTS,
    Architecture,
)

QWEN3 = Architecture(
    classes=("Qwen3ForCausalLM",),
    gguf_names=("qwen3",),
    safetensors_parts={**SAFETENSORS_PARTS, **SAFETENSORS_HEAD_NORMS},
    gguf_parts={**GGUF_PARTS, **GGUF_HEAD_NORMS},
)
