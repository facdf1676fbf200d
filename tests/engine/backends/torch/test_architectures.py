"""Every kind of model against transformers, in float32, on tiny random weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.backends.torch.architectures.catalog import ARCHITECTURES, find_class, find_gguf
from engine.backends.torch.architectures.gemma2 import GEMMA2
from engine.backends.torch.architectures.gemma3 import GEMMA3
from engine.backends.torch.backend import TorchBackend
from engine.backends.torch.model_facts import ModelFacts
from engine.errors import ModelDamaged, ModelUnsupported
from tests.engine.backends.torch.tiny_models import CONTEXT, KINDS, WORDS, save_tiny
from tests.engine.backends.torch.torch_run import logits_of, opened

NUM_TOKENS = 90
# A few roundings of the largest logit: both sum the same numbers in other orders.
ROUNDINGS = 30


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    model = save_tiny(tmp_path, kind)
    compare(model, opened(tmp_path), NUM_TOKENS)


def test_beyond_its_training_phi_turns_by_its_long_factors(tmp_path: Path) -> None:
    """They are chosen by the context, not by the length of a text: what is kept of a text must not
    change because it grew. So only a text that is that long agrees with transformers."""
    model = save_tiny(tmp_path, "phi4")
    compare(model, opened(tmp_path, context_tokens=2 * CONTEXT), CONTEXT + 20)


def compare(model: Any, backend: TorchBackend, num_tokens: int) -> None:
    generator = torch.Generator().manual_seed(1)
    token_ids = torch.randint(3, WORDS - 3, (1, num_tokens), generator=generator)
    with torch.no_grad():
        expected = model(token_ids).logits[0].numpy()
    found = logits_of(backend, token_ids[0].tolist(), [37, 1, 1, 16])
    bound = ROUNDINGS * np.finfo(np.float32).eps * np.abs(expected).max()
    assert expected.std() > 0.05
    assert np.abs(found - expected[:, : found.shape[1]]).max() <= bound


def test_every_kind_that_is_run_is_tested() -> None:
    tested = {f"{each.name}ForCausalLM" for each in KINDS.values()}
    assert tested == {name for each in ARCHITECTURES for name in each.classes}


@pytest.mark.parametrize("name", ["mamba", "qwen3next", "gpt-oss", ""])
def test_what_is_not_run_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ModelUnsupported, match=f"kind {name or 'unknown'}, .*llama"):
        find_gguf(name, "a model")
    with pytest.raises(ModelUnsupported, match=f"kind {name or 'unknown'}, .*GGUF"):
        find_class(name, "a model")


def test_weights_that_are_missing_or_would_be_left_out_are_refused(tmp_path: Path) -> None:
    save_tiny(tmp_path, "qwen2")
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("Qwen2ForCausalLM", "Qwen3ForCausalLM"))
    # As Qwen3 it would need norms that are not there.
    with pytest.raises(ModelDamaged, match="q_norm"):
        opened(tmp_path)
    save_tiny(tmp_path, "qwen3")
    config.write_text(config.read_text().replace("Qwen3ForCausalLM", "Qwen2ForCausalLM"))
    with pytest.raises(ModelUnsupported, match="does not know, such as .*_norm"):
        opened(tmp_path)


def test_large_gemmas_scale_queries_by_another_size() -> None:
    facts = ModelFacts(
        num_words=10,
        width=4608,
        num_layers=46,
        num_heads=32,
        num_kv_heads=16,
        head_dim=128,
        inner_width=100,
        norm_eps=1e-6,
        trained_context=8192,
    )
    assert GEMMA2.configure(facts).query_scale == 144**-0.5
    assert GEMMA2.configure(replace(facts, num_layers=42)).query_scale == 128**-0.5
    assert GEMMA3.configure(replace(facts, num_layers=62)).query_scale == 144**-0.5
