"""The facts of a model from transformers' configuration of it."""

from typing import Any

from engine.backends.torch.model_facts import ModelFacts
from engine.errors import ModelUnsupported
from kernels.rotary import RotaryScaling
from kernels.rotary_table import ScalingKind

_SLIDING = "sliding_attention"
_KINDS: dict[str, ScalingKind] = {
    "default": "default",
    "linear": "linear",
    "dynamic": "dynamic",
    "yarn": "yarn",
    "longrope": "longrope",
    "su": "longrope",
    "llama3": "llama3",
}


def safetensors_facts(config: Any, model: str) -> ModelFacts:
    """Raises ModelUnsupported for what is said in it and not known here."""

    def said(name: str, default: Any) -> Any:
        value = getattr(config, name, None)
        return default if value is None else value

    num_heads = int(config.num_attention_heads)
    head_dim = int(said("head_dim", config.hidden_size // num_heads))
    layer_types = tuple(said("layer_types", ()))
    window = int(said("sliding_window", 0)) if _uses_window(config, layer_types) else 0
    whole, local = _rope_parameters(config)
    # Of queries Gemma says by which size they are scaled, and Granite by how much.
    query_size = said("query_pre_attn_scalar", None)
    query_scale = said("attention_multiplier", None)
    if query_size is not None:
        query_scale = float(query_size) ** -0.5
    return ModelFacts(
        num_words=int(config.vocab_size),
        width=int(config.hidden_size),
        num_layers=int(config.num_hidden_layers),
        num_heads=num_heads,
        num_kv_heads=int(said("num_key_value_heads", num_heads)),
        head_dim=head_dim,
        inner_width=int(config.intermediate_size),
        norm_eps=float(said("rms_norm_eps", 1e-6)),
        trained_context=int(config.max_position_embeddings),
        activation=str(said("hidden_activation", said("hidden_act", ""))),
        rope_base=float(whole.get("rope_theta") or said("rope_theta", 10_000.0)),
        rope_dim=int(head_dim * float(whole.get("partial_rotary_factor") or 1.0)),
        rope_scaling=_scaling(whole, config, model),
        local_rope_base=float(local.get("rope_theta") or said("rope_local_base_freq", 10_000.0)),
        window=window,
        are_sliding=tuple(kind == _SLIDING for kind in layer_types),
        query_scale=query_scale,
        attention_softcap=float(said("attn_logit_softcapping", 0.0)),
        logit_softcap=float(said("final_logit_softcapping", 0.0)),
        embedding_scale=float(said("embedding_multiplier", 1.0)),
        residual_scale=float(said("residual_multiplier", 1.0)),
        logit_divisor=float(said("logits_scaling", 1.0)),
    )


def _uses_window(config: Any, layer_types: tuple[str, ...]) -> bool:
    if layer_types:
        return _SLIDING in layer_types
    return bool(getattr(config, "use_sliding_window", True))


def _rope_parameters(config: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the layers that look back to the beginning, and of those that slide."""
    found = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if "full_attention" in found:
        return dict(found["full_attention"]), dict(found.get(_SLIDING) or {})
    whole = dict(found)
    share = getattr(config, "partial_rotary_factor", None)
    if share is not None:
        whole.setdefault("partial_rotary_factor", share)
    return whole, {}


def _scaling(rope: dict[str, Any], config: Any, model: str) -> RotaryScaling:
    name = str(rope.get("rope_type") or rope.get("type") or "default")
    if name not in _KINDS:
        raise ModelUnsupported(
            f"{model} meets long texts by {name}, which the torch engine does not know: bring a"
            " GGUF file of it."
        )
    trained = int(config.max_position_embeddings)
    own = getattr(config, "original_max_position_embeddings", None)
    original = int(rope.get("original_max_position_embeddings") or own or trained)
    factor = float(rope.get("factor") or 1.0)
    if name in ("longrope", "su") and not rope.get("factor"):
        factor = max(1.0, trained / original)
    return RotaryScaling(
        kind=_KINDS[name],
        factor=factor,
        original_positions=original,
        attention_factor=rope.get("attention_factor"),
        beta_fast=float(rope.get("beta_fast") or 32.0),
        beta_slow=float(rope.get("beta_slow") or 1.0),
        mscale=float(rope.get("mscale") or 0.0),
        mscale_all_dim=float(rope.get("mscale_all_dim") or 0.0),
        truncates=bool(rope.get("truncate", True)),
        short_factors=tuple(map(float, rope.get("short_factor") or ())),
        long_factors=tuple(map(float, rope.get("long_factor") or ())),
        low_frequency_factor=float(rope.get("low_freq_factor") or 1.0),
        high_frequency_factor=float(rope.get("high_freq_factor") or 4.0),
    )
