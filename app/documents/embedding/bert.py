"""A BERT as llama.cpp reads it from a GGUF file: what is said of it, and its tensors' names."""

from collections.abc import Sequence

from engine.backends.llama_cpp.gguf_writer import Written

MEAN = 1
"""ggml's number for a text's vector that is the mean of its tokens'."""
OF_MODEL = (
    *("token_embd.weight", "position_embd.weight", "token_types.weight"),
    *("token_embd_norm.weight", "token_embd_norm.bias"),
)
OF_LAYER = (
    *("attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm"),
    *("ffn_up", "ffn_down", "layer_output_norm"),
)
"""Each with a weight and a bias."""


def facts(
    *,
    name: str,
    license: str,
    layers: int,
    positions: int,
    width: int,
    inner: int,
    heads: int,
    epsilon: float,
) -> dict[str, Written]:
    """All but its vocabulary."""
    return {
        "general.architecture": "bert",
        "general.name": name,
        "general.license": license,
        "bert.block_count": layers,
        "bert.context_length": positions,
        "bert.embedding_length": width,
        "bert.feed_forward_length": inner,
        "bert.attention.head_count": heads,
        "bert.attention.layer_norm_epsilon": float(epsilon),
        "bert.attention.causal": False,
        "bert.pooling_type": MEAN,
    }


def theirs_by_ours(
    num_layers: int, of_model: Sequence[str], of_layer: Sequence[str], form: str, *kinds: str
) -> dict[str, str]:
    """Which tensor of another file each of ours is: `of_model` and `of_layer` in the order of those
    above, `form` with {layer}, {part} and {kind}, and `kinds` what a weight and a bias are called.
    """
    names = dict(zip(OF_MODEL, of_model, strict=True))
    for layer in range(num_layers):
        for ours, part in zip(OF_LAYER, of_layer, strict=True):
            for our_kind, kind in zip(("weight", "bias"), kinds, strict=True):
                their = form.format(layer=layer, part=part, kind=kind)
                names[f"blk.{layer}.{ours}.{our_kind}"] = their
    return names
