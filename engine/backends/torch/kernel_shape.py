"""What a model needs of the kernels: so each of them is tried and built before anybody waits."""

from engine.backends.torch.kv_kind import KVKind
from engine.backends.torch.opened_model import OpenedModel
from engine.backends.torch.placement import Placement
from kernels.specs import ModelShape


def kernel_shape(
    opened: OpenedModel, placement: Placement, kind: KVKind, max_tokens: int
) -> ModelShape:
    """`max_tokens` of one sequence."""
    config = opened.config
    facts = config.facts
    return ModelShape(
        name=opened.info.name,
        num_heads=facts.num_heads,
        num_kv_heads=facts.num_kv_heads,
        head_dim=facts.head_dim,
        hidden=facts.width,
        feed_forward=facts.inner_width,
        vocab=facts.num_words,
        dtype=placement.dtype,
        kv_dtype=kind.dtype,
        rotary_dims=tuple(dict.fromkeys(rope.dim for rope in config.ropes)),
        windows=tuple(dict.fromkeys(layer.window for layer in config.layers)),
        softcap=config.attention_softcap,
        final_softcap=config.logit_softcap,
        activation=config.activation,
        has_head_norms=opened.has_head_norms,
        weight_types=opened.source.packed_types if placement.keeps_packed else (),
        max_tokens=max_tokens,
    )
