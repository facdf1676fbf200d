"""Phi 3 and 4 mini: Q, K and V in one matrix, gate and up in another."""

from engine.backends.torch.architecture import GGUF_PARTS, SAFETENSORS_PARTS, Architecture

_APART = ("query", "key", "value", "gate", "up")

PHI3 = Architecture(
    classes=("Phi3ForCausalLM",),
    gguf_names=("phi3",),
    safetensors_parts={
        **{part: name for part, name in SAFETENSORS_PARTS.items() if part not in _APART},
        "query_key_value": "model.layers.{}.self_attn.qkv_proj",
        "gate_up": "model.layers.{}.mlp.gate_up_proj",
    },
    gguf_parts={
        **{part: name for part, name in GGUF_PARTS.items() if part not in _APART},
        "query_key_value": "blk.{}.attn_qkv",
        "gate_up": "blk.{}.ffn_up",
    },
)
