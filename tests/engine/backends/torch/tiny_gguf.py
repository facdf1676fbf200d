"""Tiny models of transformers as GGUF files, as llama.cpp's converter writes them."""

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.engine.backends.torch.tiny_models import KINDS

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "llama with a bias": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "qwen3 with yarn": gguf.MODEL_ARCH.QWEN3,
    "gemma2": gguf.MODEL_ARCH.GEMMA2,
    "gemma3": gguf.MODEL_ARCH.GEMMA3,
    "phi3": gguf.MODEL_ARCH.PHI3,
    "phi4": gguf.MODEL_ARCH.PHI3,
    "granite": gguf.MODEL_ARCH.GRANITE,
}
_INTERLEAVED = (gguf.MODEL_ARCH.LLAMA, gguf.MODEL_ARCH.GRANITE)


def write_tiny_gguf(
    path: Path, kind: str, *, packed: gguf.GGMLQuantizationType | None = None
) -> Any:
    """The model of transformers that the file holds; `packed`: with its rounded weights."""
    # No file says by what Gemma scales its queries.
    more = {"query_pre_attn_scalar": 24} if kind.startswith("gemma") else {}
    model = KINDS[kind].make(**more)
    architecture = ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    _add_facts(writer, model.config, kind)
    _add_words(writer, model.config.vocab_size)
    names = gguf.get_tensor_name_map(architecture, model.config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        numbers = weight.numpy()
        if packed is not None and numbers.ndim == 2:
            data = gguf.quants.quantize(numbers, packed)
            weight.copy_(weight.new_tensor(gguf.quants.dequantize(data, packed)))
            numbers = weight.numpy()
        if architecture in _INTERLEAVED and (".q_proj." in name or ".k_proj." in name):
            config = model.config
            heads = config.num_attention_heads
            heads = heads if ".q_proj." in name else config.num_key_value_heads
            pairs = numbers.reshape(heads, 2, -1, *numbers.shape[1:]).swapaxes(1, 2)
            numbers = pairs.reshape(numbers.shape)
        if "norm" in name and "Gemma" in type(model).__name__:
            numbers = numbers + 1
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found is not None, name
        data = np.array(numbers, np.float32, order="C")
        if packed is not None and data.ndim == 2:
            writer.add_tensor(found, gguf.quants.quantize(data, packed), raw_dtype=packed)
        else:
            writer.add_tensor(found, data)
    _add_rope_factors(writer, model.config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _add_facts(writer: gguf.GGUFWriter, config: Any, kind: str) -> None:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    # llama.cpp looks for words that are not here in what is called phi3.
    writer.add_name("a tiny model")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    whole = rope.get("full_attention", rope)
    share = whole.get("partial_rotary_factor") or 1.0
    writer.add_rope_dimension_count(int(head_dim * share))
    writer.add_rope_freq_base(whole["rope_theta"])
    if whole["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(whole["rope_type"]))
        writer.add_rope_scaling_factor(whole["factor"])
    original = getattr(config, "original_max_position_embeddings", None)
    original = original or whole.get("original_max_position_embeddings")
    if original is not None:
        writer.add_rope_scaling_orig_ctx_len(original)
    if whole["rope_type"] == "longrope":
        stretch = config.max_position_embeddings / original
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(stretch) / math.log(original)))
    if getattr(config, "sliding_window", None) is not None:
        writer.add_sliding_window(config.sliding_window)
    if getattr(config, "attn_logit_softcapping", None):
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    if getattr(config, "final_logit_softcapping", None):
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if kind == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)


def _add_rope_factors(writer: gguf.GGUFWriter, config: Any) -> None:
    rope = config.rope_parameters
    for name, key in (("long", "long_factor"), ("short", "short_factor")):
        if rope.get(key):
            writer.add_tensor(f"rope_factors_{name}.weight", np.array(rope[key], np.float32))


def _add_words(writer: gguf.GGUFWriter, count: int) -> None:
    """Bytes, and words that nobody uses."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256))]
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    words = [f"▁w{number}" for number in range(count - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*tokens, *words])
    writer.add_token_scores([0.0] * len(tokens) + [-1.0] * len(words))
    writer.add_token_types([*types, *[gguf.TokenType.NORMAL] * len(words)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
