"""One kind of model: by which names files know it, and how it is put together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.backends.torch.decoder_config import DecoderConfig, plain
from engine.backends.torch.model_facts import ModelFacts

GLOBAL_PARTS = ("embedding", "last_norm", "head")

SAFETENSORS_PARTS: Mapping[str, str] = {
    "embedding": "model.embed_tokens",
    "last_norm": "model.norm",
    "head": "lm_head",
    "attention_norm": "model.layers.{}.input_layernorm",
    "query": "model.layers.{}.self_attn.q_proj",
    "key": "model.layers.{}.self_attn.k_proj",
    "value": "model.layers.{}.self_attn.v_proj",
    "output": "model.layers.{}.self_attn.o_proj",
    "mlp_norm": "model.layers.{}.post_attention_layernorm",
    "gate": "model.layers.{}.mlp.gate_proj",
    "up": "model.layers.{}.mlp.up_proj",
    "down": "model.layers.{}.mlp.down_proj",
}
"""What Llama's parts are called in files of transformers, without `.weight` and `.bias`."""

GGUF_PARTS: Mapping[str, str] = {
    "embedding": "token_embd",
    "last_norm": "output_norm",
    "head": "output",
    "attention_norm": "blk.{}.attn_norm",
    "query": "blk.{}.attn_q",
    "key": "blk.{}.attn_k",
    "value": "blk.{}.attn_v",
    "output": "blk.{}.attn_output",
    "mlp_norm": "blk.{}.ffn_norm",
    "gate": "blk.{}.ffn_gate",
    "up": "blk.{}.ffn_up",
    "down": "blk.{}.ffn_down",
}

SAFETENSORS_HEAD_NORMS = {
    "query_norm": "model.layers.{}.self_attn.q_norm",
    "key_norm": "model.layers.{}.self_attn.k_norm",
}
GGUF_HEAD_NORMS = {"query_norm": "blk.{}.attn_q_norm", "key_norm": "blk.{}.attn_k_norm"}

SAFETENSORS_POST_NORMS = {
    "post_attention_norm": "model.layers.{}.post_attention_layernorm",
    "mlp_norm": "model.layers.{}.pre_feedforward_layernorm",
    "post_mlp_norm": "model.layers.{}.post_feedforward_layernorm",
}
GGUF_POST_NORMS = {
    "post_attention_norm": "blk.{}.post_attention_norm",
    "post_mlp_norm": "blk.{}.post_ffw_norm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """`classes` are transformers' names of it, `gguf_names` llama.cpp's. The parts say where its
    weights are found; `{}` is the number of the layer, and a part that is not named is not there.

    `interleaves_in_gguf`: there the rows of Q and K stand in the order of neighbouring pairs.
    `norms_less_one`: in files of transformers norms are stored less 1.
    """

    classes: tuple[str, ...]
    gguf_names: tuple[str, ...]
    safetensors_parts: Mapping[str, str] = field(default_factory=lambda: SAFETENSORS_PARTS)
    gguf_parts: Mapping[str, str] = field(default_factory=lambda: GGUF_PARTS)
    interleaves_in_gguf: bool = False
    norms_less_one: bool = False
    configure: Callable[[ModelFacts], DecoderConfig] = plain
