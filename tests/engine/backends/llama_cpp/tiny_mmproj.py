"""Tiny multimodal parts with random weights, for the tiny models of `tiny_model`."""

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.engine.backends.llama_cpp.tiny_model import WIDTH

EYE_WIDTH = 32
EYE_HEADS = 2
IMAGE_SIDE = 56
PATCH_SIDE = 7
MEL_BINS = 80
STACK = 4
# 30 seconds of Whisper's frames, two of them in one place.
AUDIO_PLACES = 1500


def write_tiny_mmproj(path: Path, projector: str = "gemma3", width: int = WIDTH) -> Path:
    """`gemma3` (16 tokens a picture, which look at one another), `mlp` (64, each sees those before
    it), `idefics3` (16 for each of several tiles, with marks between), `ultravox` (sounds).
    `width`: of the text model."""
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_name(f"tiny {projector}")
    if projector == "ultravox":
        _add_audio(writer, width)
    else:
        _add_vision(writer, projector, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vision(writer: gguf.GGUFWriter, projector: str, width: int) -> None:
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", projector)
    writer.add_bool("clip.use_gelu", True)
    writer.add_uint32("clip.vision.image_size", IMAGE_SIDE)
    writer.add_uint32("clip.vision.patch_size", PATCH_SIDE)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    _add_encoder_facts(writer, "vision", width)
    num_patches = (IMAGE_SIDE // PATCH_SIDE) ** 2
    _add(writer, "v.patch_embd.weight", EYE_WIDTH, 3, PATCH_SIDE, PATCH_SIDE)
    _add(writer, "v.position_embd.weight", num_patches, EYE_WIDTH)
    _add_layer(writer, "v")
    _add_norm(writer, "v.post_ln")
    if projector == "gemma3":
        writer.add_uint32("clip.vision.projector.scale_factor", 2)
        _add(writer, "mm.input_projection.weight", EYE_WIDTH, width)
        _add_ones(writer, "mm.soft_emb_norm.weight", EYE_WIDTH)
    elif projector == "idefics3":
        writer.add_uint32("clip.vision.projector.scale_factor", 2)
        writer.add_uint32("clip.vision.preproc_image_size", 2 * IMAGE_SIDE)
        _add(writer, "mm.model.fc.weight", width, 4 * EYE_WIDTH)
    else:
        _add(writer, "mm.0.weight", width, EYE_WIDTH)
        _add(writer, "mm.0.bias", width)
        _add(writer, "mm.2.weight", width, width)
        _add(writer, "mm.2.bias", width)


def _add_audio(writer: gguf.GGUFWriter, width: int) -> None:
    writer.add_bool("clip.has_audio_encoder", True)
    writer.add_string("clip.projector_type", "ultravox")
    writer.add_uint32("clip.audio.num_mel_bins", MEL_BINS)
    writer.add_uint32("clip.audio.projector.stack_factor", STACK)
    _add_encoder_facts(writer, "audio", width)
    _add(writer, "a.conv1d.1.weight", EYE_WIDTH, MEL_BINS, 3)
    _add(writer, "a.conv1d.1.bias", EYE_WIDTH, 1)
    _add(writer, "a.conv1d.2.weight", EYE_WIDTH, EYE_WIDTH, 3)
    _add(writer, "a.conv1d.2.bias", EYE_WIDTH, 1)
    _add(writer, "a.position_embd.weight", AUDIO_PLACES, EYE_WIDTH)
    _add_layer(writer, "a", has_bias=True)
    _add_norm(writer, "a.post_ln")
    _add_ones(writer, "mm.a.norm_pre.weight", EYE_WIDTH * STACK)
    _add(writer, "mm.a.mlp.1.weight", 2 * width, EYE_WIDTH * STACK)
    _add_ones(writer, "mm.a.norm_mid.weight", width)
    _add(writer, "mm.a.mlp.2.weight", width, width)


def _add_encoder_facts(writer: gguf.GGUFWriter, kind: str, width: int) -> None:
    for name, value in (
        ("embedding_length", EYE_WIDTH),
        ("attention.head_count", EYE_HEADS),
        ("feed_forward_length", 2 * EYE_WIDTH),
        ("block_count", 1),
        ("projection_dim", width),
    ):
        writer.add_uint32(f"clip.{kind}.{name}", value)
    writer.add_float32(f"clip.{kind}.attention.layer_norm_epsilon", 1e-5)


def _add_layer(writer: gguf.GGUFWriter, prefix: str, has_bias: bool = False) -> None:
    block = f"{prefix}.blk.0"
    for name in ("ln1", "ln2"):
        _add_norm(writer, f"{block}.{name}")
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        _add(writer, f"{block}.{name}.weight", EYE_WIDTH, EYE_WIDTH)
        if has_bias and name != "attn_k":
            _add(writer, f"{block}.{name}.bias", EYE_WIDTH)
    _add(writer, f"{block}.ffn_up.weight", 2 * EYE_WIDTH, EYE_WIDTH)
    _add(writer, f"{block}.ffn_up.bias", 2 * EYE_WIDTH)
    _add(writer, f"{block}.ffn_down.weight", EYE_WIDTH, 2 * EYE_WIDTH)
    _add(writer, f"{block}.ffn_down.bias", EYE_WIDTH)


def _add_norm(writer: gguf.GGUFWriter, name: str) -> None:
    _add_ones(writer, f"{name}.weight", EYE_WIDTH)
    writer.add_tensor(f"{name}.bias", np.zeros(EYE_WIDTH, np.float32))


def _add(writer: gguf.GGUFWriter, name: str, *shape: int) -> None:
    generator = np.random.default_rng(sum(map(ord, name)))
    writer.add_tensor(name, _scaled(generator.standard_normal(shape)))


def _add_ones(writer: gguf.GGUFWriter, name: str, size: int) -> None:
    writer.add_tensor(name, np.ones(size, np.float32))


def _scaled(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    return (numbers / 4).astype(np.float32)
