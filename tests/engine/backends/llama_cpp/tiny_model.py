"""Tiny models with random weights, for the architectures that the starter is not."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np

CONTEXT = 1024
WIDTH = 64
LAYERS = 2
HEADS = 2
WINDOW = 32
INNER, STATE, RANK, KERNEL = 2 * WIDTH, 16, 4, 4


def write_tiny_model(
    path: Path,
    architecture: str = "llama",
    sampling: Mapping[str, float] | None = None,
    marks: Sequence[str] = (),
) -> Path:
    """`llama`, `gemma3` (its window slides over 32 tokens), `mamba` (recurrent), `jamba` (a
    recurrent layer and one that attends), `lfm2` (that and a window), `qwen2vl` (it counts places
    in rows and columns), or any name. `sampling` is
    what the file recommends, `marks` are more control tokens."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(f"tiny {architecture}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    for name, value in (sampling or {}).items():
        writer.add_key_value(
            f"general.sampling.{name}",
            value,
            gguf.GGUFValueType.INT32 if isinstance(value, int) else gguf.GGUFValueType.FLOAT32,
        )
    _add_vocabulary(writer, marks)
    last_norm = "token_embd_norm" if architecture == "lfm2" else "output_norm"
    _add_ones(writer, f"{last_norm}.weight", WIDTH)
    layers = {"gemma3": _add_gemma3, "mamba": _add_mamba, "jamba": _add_jamba, "lfm2": _add_lfm2}
    layers["qwen2vl"] = _add_qwen2vl
    layers.get(architecture, _add_llama)(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, marks: Sequence[str]) -> None:
    """Bytes, and a few words, as a sentencepiece vocabulary has them."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256))]
    tokens += marks
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    types += [gguf.TokenType.CONTROL] * len(marks)
    words = ["▁", "a", "b", "c", "d", "e", "▁a", "▁b"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*tokens, *words])
    writer.add_token_scores([0.0] * len(tokens) + [-1.0] * len(words))
    writer.add_token_types([*types, *[gguf.TokenType.NORMAL] * len(words)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    _add(writer, "token_embd.weight", len(tokens) + len(words), WIDTH)


def _add_llama(writer: gguf.GGUFWriter) -> None:
    _add_attention_facts(writer)
    for layer in range(LAYERS):
        _add_attention(writer, f"blk.{layer}")


def _add_qwen2vl(writer: gguf.GGUFWriter) -> None:
    _add_attention_facts(writer)
    writer.add_rope_dimension_sections([8, 4, 4, 0])
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        _add_attention(writer, block)
        for name in ("attn_q", "attn_k", "attn_v"):
            _add(writer, f"{block}.{name}.bias", WIDTH)


def _add_gemma3(writer: gguf.GGUFWriter) -> None:
    _add_attention_facts(writer)
    writer.add_key_length(WIDTH // HEADS)
    writer.add_value_length(WIDTH // HEADS)
    writer.add_sliding_window(WINDOW)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        _add_attention(writer, block)
        for name in ("attn_q_norm", "attn_k_norm"):
            _add_ones(writer, f"{block}.{name}.weight", WIDTH // HEADS)
        for name in ("post_attention_norm", "post_ffw_norm"):
            _add_ones(writer, f"{block}.{name}.weight", WIDTH)


def _add_attention_facts(writer: gguf.GGUFWriter) -> None:
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)


def _add_attention(writer: gguf.GGUFWriter, block: str) -> None:
    _add_ones(writer, f"{block}.attn_norm.weight", WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        _add(writer, f"{block}.{name}.weight", WIDTH, WIDTH)
    _add_feed_forward(writer, block)


def _add_feed_forward(writer: gguf.GGUFWriter, block: str) -> None:
    _add_ones(writer, f"{block}.ffn_norm.weight", WIDTH)
    for name in ("ffn_gate", "ffn_up"):
        _add(writer, f"{block}.{name}.weight", 2 * WIDTH, WIDTH)
    _add(writer, f"{block}.ffn_down.weight", WIDTH, 2 * WIDTH)


def _add_mamba(writer: gguf.GGUFWriter) -> None:
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_state_facts(writer)
    for layer in range(LAYERS):
        _add_state_space(writer, f"blk.{layer}")


def _add_jamba(writer: gguf.GGUFWriter) -> None:
    _add_hybrid_facts(writer)
    _add_state_facts(writer)
    _add_state_space(writer, "blk.0")
    for name, size in (("ssm_dt_norm", RANK), ("ssm_b_norm", STATE), ("ssm_c_norm", STATE)):
        _add_ones(writer, f"blk.0.{name}.weight", size)
    _add_feed_forward(writer, "blk.0")
    _add_attention(writer, "blk.1")


def _add_lfm2(writer: gguf.GGUFWriter) -> None:
    kernel = 3
    _add_hybrid_facts(writer)
    writer.add_sliding_window(WINDOW)
    writer.add_shortconv_l_cache(kernel)
    _add_ones(writer, "blk.0.attn_norm.weight", WIDTH)
    _add(writer, "blk.0.shortconv.conv.weight", WIDTH, kernel)
    _add(writer, "blk.0.shortconv.in_proj.weight", 3 * WIDTH, WIDTH)
    _add(writer, "blk.0.shortconv.out_proj.weight", WIDTH, WIDTH)
    _add_feed_forward(writer, "blk.0")
    _add_attention(writer, "blk.1")
    for name in ("attn_q_norm", "attn_k_norm"):
        _add_ones(writer, f"blk.1.{name}.weight", WIDTH // HEADS)


def _add_hybrid_facts(writer: gguf.GGUFWriter) -> None:
    """A layer without heads for K and V is a recurrent one."""
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv([0, HEADS])
    writer.add_layer_norm_rms_eps(1e-5)


def _add_state_facts(writer: gguf.GGUFWriter) -> None:
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)


def _add_state_space(writer: gguf.GGUFWriter, block: str) -> None:
    _add_ones(writer, f"{block}.attn_norm.weight", WIDTH)
    _add(writer, f"{block}.ssm_in.weight", 2 * INNER, WIDTH)
    _add(writer, f"{block}.ssm_conv1d.weight", INNER, KERNEL)
    _add_ones(writer, f"{block}.ssm_conv1d.bias", INNER)
    _add(writer, f"{block}.ssm_x.weight", RANK + 2 * STATE, INNER)
    _add(writer, f"{block}.ssm_dt.weight", INNER, RANK)
    _add_ones(writer, f"{block}.ssm_dt.bias", INNER)
    writer.add_tensor(f"{block}.ssm_a", -np.ones((INNER, STATE), np.float32))
    _add_ones(writer, f"{block}.ssm_d", INNER)
    _add(writer, f"{block}.ssm_out.weight", WIDTH, INNER)


def _add(writer: gguf.GGUFWriter, name: str, *shape: int) -> None:
    generator = np.random.default_rng(len(name) + sum(map(ord, name)))
    writer.add_tensor(name, (generator.standard_normal(shape) / 4).astype(np.float32))


def _add_ones(writer: gguf.GGUFWriter, name: str, size: int) -> None:
    writer.add_tensor(name, np.ones(size, np.float32))
