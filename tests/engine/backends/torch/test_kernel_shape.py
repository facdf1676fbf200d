"""What the kernels are told of a model: nothing that a step needs may be missing."""

from pathlib import Path

import pytest
import torch

from engine.backends.torch.gguf_model import open_gguf
from engine.backends.torch.kernel_shape import kernel_shape
from engine.backends.torch.kv_kind import choose_kind
from engine.backends.torch.placement import Placement
from engine.backends.torch.safetensors_model import open_safetensors
from kernels.self_test import self_test
from tests.engine.backends.torch.tiny_models import KINDS, WINDOW, WORDS, save_tiny

CPU = torch.device("cpu")
PACKED = Placement(device=CPU, dtype=torch.bfloat16, keeps_packed=True)


def test_the_starter_needs_the_types_of_its_file(starter: Path) -> None:
    shape = kernel_shape(open_gguf(starter), PACKED, choose_kind("q8_0", torch.bfloat16), 1024)
    assert shape.weight_types == ("Q8_0", "Q4_1")
    assert (shape.num_heads, shape.num_kv_heads, shape.head_dim) == (9, 3, 64)
    assert (shape.hidden, shape.feed_forward, shape.vocab) == (576, 1536, 49152)
    assert (shape.dtype, shape.kv_dtype) == (torch.bfloat16, torch.int8)
    assert (shape.windows, shape.rotary_dims, shape.max_tokens) == ((0,), (64,), 1024)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_can_be_tried(kind: str, tmp_path: Path) -> None:
    save_tiny(tmp_path, kind)
    shape = kernel_shape(
        open_safetensors(tmp_path), PACKED, choose_kind("auto", torch.bfloat16), 256
    )
    assert shape.vocab == WORDS and shape.weight_types == ()
    assert shape.has_head_norms == (kind.startswith(("qwen3", "gemma3")))
    slides = kind.startswith(("gemma", "mistral")) or kind == "phi3"
    assert (WINDOW in shape.windows) == slides
    # Without a card each is compared with itself, by way of all that the shape says.
    assert self_test(shape, CPU) == {}
