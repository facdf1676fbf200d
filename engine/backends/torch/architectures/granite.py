"""Granite 3: Llama with four scales that the file names."""

from dataclasses import replace

from engine.backends.torch.architecture import Architecture
from engine.backends.torch.decoder_config import DecoderConfig, plain
from engine.backends.torch.model_facts import ModelFacts


def configure(facts: ModelFacts) -> DecoderConfig:
    return replace(
        plain(facts),
        embedding_scale=facts.embedding_scale,
        residual_scale=facts.residual_scale,
        logit_divisor=facts.logit_divisor,
    )


GRANITE = Architecture(
    classes=("GraniteForCausalLM",),
    gguf_names=("granite",),
    interleaves_in_gguf=True,
    configure=configure,
)
