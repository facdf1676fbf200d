"""Gemma 2: norms after the layers too, capped scores, every other layer with a sliding window."""

from dataclasses import replace

from engine.backends.torch.architecture import (
    GGUF_PARTS,
    GGUF_POST_NORMS,
    SAFETENSORS_PARTS,
    SAFETENSORS_POST_NORMS,
    Architecture,
)
from engine.backends.torch.decoder_config import DecoderConfig, alternating, plain
from engine.backends.torch.model_facts import ModelFacts

LARGE_LAYERS = 46
"""Of the model with 27 billion weights, whose queries are scaled by another size than their own."""


def configure(facts: ModelFacts) -> DecoderConfig:
    scale = facts.query_scale
    if scale is None and facts.num_layers == LARGE_LAYERS:
        scale = (facts.width / facts.num_heads) ** -0.5
    return replace(
        plain(replace(facts, query_scale=scale)),
        layers=alternating(facts, period=2, sliding_rope=0),
        activation="gelu_tanh",
        attention_softcap=facts.attention_softcap,
        logit_softcap=facts.logit_softcap,
        embedding_scale=facts.width**0.5,
    )


GEMMA2 = Architecture(
    classes=("Gemma2ForCausalLM",),
    gguf_names=("gemma2",),
    safetensors_parts={**SAFETENSORS_PARTS, **SAFETENSORS_POST_NORMS},
    gguf_parts={**GGUF_PARTS, **GGUF_POST_NORMS},
    norms_less_one=True,
    configure=configure,
)
