"""The facts of a model from the header of its GGUF file; keys as in ggml's docs/gguf.md."""

from collections.abc import Callable

from torch import Tensor

from engine.backends.llama_cpp.gguf_header import GGUFHeader
from engine.backends.torch.model_facts import ModelFacts
from engine.errors import ModelUnsupported
from kernels.rotary import RotaryScaling

ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def gguf_facts(
    header: GGUFHeader, model: str, num_words: int, read: Callable[[str], Tensor | None]
) -> ModelFacts:
    """`read` gives a tensor of the file as numbers, or None where it is not there."""
    values = header.values

    def real(key: str, default: float) -> float:
        value = values.get(f"{header.architecture}.{key}", default)
        return float(value) if isinstance(value, int | float) else default

    per_layer = values.get(f"{header.architecture}.attention.head_count_kv")
    if isinstance(per_layer, tuple) and len(set(per_layer)) > 1:
        raise ModelUnsupported(
            f"The layers of {model} have different numbers of heads, which the torch engine does"
            " not run: use --backend llama for it."
        )
    width, num_heads = header.own("embedding_length"), header.own("attention.head_count")
    head_dim = header.own("attention.key_length") or width // max(1, num_heads)
    if header.own("attention.value_length", head_dim) != head_dim:
        raise ModelUnsupported(
            f"{model} has keys and values of different sizes, which the torch engine does not run:"
            " use --backend llama for it."
        )
    query_scale = real("attention.scale", 0.0)
    return ModelFacts(
        num_words=num_words,
        width=width,
        num_layers=header.own("block_count"),
        num_heads=num_heads,
        num_kv_heads=header.own("attention.head_count_kv") or num_heads,
        head_dim=head_dim,
        inner_width=header.own("feed_forward_length"),
        norm_eps=real("attention.layer_norm_rms_epsilon", 1e-5),
        trained_context=header.own("context_length"),
        rope_base=real("rope.freq_base", 10_000.0),
        rope_dim=header.own("rope.dimension_count"),
        rope_scaling=_scaling(header, real, read),
        local_rope_base=real("rope.freq_base_swa", 10_000.0),
        window=header.own("attention.sliding_window"),
        query_scale=query_scale or None,
        attention_softcap=real("attn_logit_softcapping", 0.0),
        logit_softcap=real("final_logit_softcapping", 0.0),
        embedding_scale=real("embedding_scale", 1.0),
        residual_scale=real("residual_scale", 1.0),
        logit_divisor=real("logit_scale", 1.0),
    )


def _scaling(
    header: GGUFHeader, real: Callable[[str, float], float], read: Callable[[str], Tensor | None]
) -> RotaryScaling:
    divisors, long, short = (_numbers(read(name)) for name in ROPE_TENSORS)
    original = header.own("rope.scaling.original_context_length")
    attention_factor = real("rope.scaling.attn_factor", 0.0) or None
    if long and short:
        return RotaryScaling(
            kind="longrope",
            factor=max(1.0, header.own("context_length") / max(1, original)),
            original_positions=original or header.own("context_length"),
            attention_factor=attention_factor,
            long_factors=long,
            short_factors=short,
        )
    kind = header.text(f"{header.architecture}.rope.scaling.type")
    factor = real("rope.scaling.factor", 0.0) or real("rope.scale_linear", 0.0) or 1.0
    if kind == "yarn":
        return RotaryScaling(
            kind="yarn",
            factor=factor,
            original_positions=original or header.own("context_length"),
            attention_factor=attention_factor,
            divisors=divisors,
        )
    if factor != 1.0 and kind != "none":
        return RotaryScaling(kind="linear", factor=factor, divisors=divisors)
    return RotaryScaling(divisors=divisors)


def _numbers(tensor: Tensor | None) -> tuple[float, ...]:
    return () if tensor is None else tuple(tensor.float().flatten().tolist())
