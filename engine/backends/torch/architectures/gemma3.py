"""Gemma 3: five of six layers slide, and those turn by a base of their own."""

from dataclasses import replace

from engine.backends.torch.architecture import (
    GGUF_HEAD_NORMS,
    GGUF_PARTS,
    GGUF_POST_NORMS,
    SAFETENSORS_HEAD_NORMS,
    SAFETENSORS_PARTS,
    SAFETENSORS_POST_NORMS,
    Architecture,
)
from engine.backends.torch.decoder_config import (
    DecoderConfig,
    Rope,
    alternating,
    global_rope,
    plain,
)
from engine.backends.torch.model_facts import ModelFacts

LARGE_LAYERS = 62
"""Of the model with 27 billion weights, whose queries are scaled by another size than their own."""


def configure(facts: ModelFacts) -> DecoderConfig:
    scale = facts.query_scale
    if scale is None and facts.num_layers == LARGE_LAYERS:
        scale = (facts.width / facts.num_heads) ** -0.5
    local = Rope(dim=facts.rope_dim or facts.head_dim, base=facts.local_rope_base)
    return replace(
        plain(replace(facts, query_scale=scale)),
        layers=alternating(facts, period=6, sliding_rope=1),
        ropes=(global_rope(facts), local),
        activation="gelu_tanh",
        logit_softcap=facts.logit_softcap,
        attention_softcap=facts.attention_softcap,
        embedding_scale=facts.width**0.5,
    )


GEMMA3 = Architecture(
    classes=("Gemma3ForCausalLM",),
    gguf_names=("gemma3",),
    safetensors_parts={**SAFETENSORS_PARTS, **SAFETENSORS_POST_NORMS, **SAFETENSORS_HEAD_NORMS},
    gguf_parts={**GGUF_PARTS, **GGUF_POST_NORMS, **GGUF_HEAD_NORMS},
    norms_less_one=True,
    configure=configure,
)
