"""How the shared layers are put together into one model: values only."""

from dataclasses import dataclass

from engine.backends.torch.model_facts import ModelFacts
from kernels.activation import Activation
from kernels.rotary import RotaryScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """The first `dim` numbers of each head turn, by position."""

    dim: int
    base: float
    scaling: RotaryScaling = RotaryScaling()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerConfig:
    """`window`: how many tokens back it looks, its own among them (0: all). `rope`: which one of
    the model's."""

    window: int = 0
    rope: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """One model. What is scaled: the embedding, what a layer adds, the queries; logits are
    divided. A softcap of 0 caps nothing."""

    facts: ModelFacts
    layers: tuple[LayerConfig, ...]
    ropes: tuple[Rope, ...]
    query_scale: float
    activation: Activation = "silu"
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_divisor: float = 1.0


def plain(facts: ModelFacts) -> DecoderConfig:
    """As Llama is: every layer alike, looking as far back as the file says."""
    return DecoderConfig(
        facts=facts,
        layers=(LayerConfig(window=facts.window),) * facts.num_layers,
        ropes=(global_rope(facts),),
        query_scale=facts.query_scale or facts.head_dim**-0.5,
    )


def global_rope(facts: ModelFacts) -> Rope:
    return Rope(
        dim=facts.rope_dim or facts.head_dim, base=facts.rope_base, scaling=facts.rope_scaling
    )


def alternating(facts: ModelFacts, period: int, sliding_rope: int) -> tuple[LayerConfig, ...]:
    """All but each `period`-th layer slide, unless the file says which."""
    are_sliding = facts.are_sliding or tuple(
        (number + 1) % period != 0 for number in range(facts.num_layers)
    )
    return tuple(
        LayerConfig(window=facts.window, rope=sliding_rope) if slides else LayerConfig()
        for slides in are_sliding
    )
