"""What a model file says of its model, whatever the form of the file."""

from dataclasses import dataclass

from kernels.rotary import RotaryScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Sizes in numbers, lengths in tokens; 0 or None where the file says nothing.

    `window` is how far sliding layers look, and `are_sliding` says of each layer whether it is one.
    `query_scale` is what queries are multiplied with, and the other scales likewise, but that of
    logits, by which they are divided.
    """

    num_words: int
    width: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    inner_width: int
    norm_eps: float
    trained_context: int
    activation: str = ""
    rope_base: float = 10_000.0
    rope_dim: int = 0
    rope_scaling: RotaryScaling = RotaryScaling()
    local_rope_base: float = 10_000.0
    window: int = 0
    are_sliding: tuple[bool, ...] = ()
    query_scale: float | None = None
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_divisor: float = 1.0
