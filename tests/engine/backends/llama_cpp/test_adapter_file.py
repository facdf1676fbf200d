"""An adapter file is refused in a sentence before llama.cpp sees it, or fits its model."""

from pathlib import Path
from typing import Any

import gguf
import pytest

from engine.backends.llama_cpp.adapter_file import check_adapter_file, check_fits, is_adapter_file
from engine.backends.llama_cpp.gguf_header import read_header
from engine.errors import ModelDamaged, ModelError, ModelNotFound, ModelUnsupported
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import WIDTH, write_tiny_model

QUERY = "blk.0.attn_q.weight"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def check(path: Path, model: Path) -> None:
    check_fits(path, check_adapter_file(path), "tiny", [read_header(model)])


def test_one_that_fits_says_what_it_changes(tmp_path: Path, model: Path) -> None:
    path = write_tiny_adapter(
        tmp_path / "a.gguf",
        facts={"general.base_model.0.name": "Tiny"},
        added={"output_norm.weight": (WIDTH,)},
    )
    facts = check_adapter_file(path)
    assert (facts.architecture, facts.base_model) == ("llama", "Tiny")
    assert facts.changes["blk.0.ffn_down.weight"] == ((2 * WIDTH, 4), (4, WIDTH))
    check(path, model)
    assert is_adapter_file(path) and not is_adapter_file(model)


def test_a_change_of_the_words_lies_the_other_way_round(tmp_path: Path, model: Path) -> None:
    (num_words,) = [t.shape[1] for t in read_header(model).tensors if t.name == "token_embd.weight"]
    parts = {"token_embd.weight.lora_a": (num_words, 4), "token_embd.weight.lora_b": (WIDTH, 4)}
    check(write_tiny_adapter(tmp_path / "a.gguf", changed={}, added=parts), model)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"architecture": "gemma3"}, "for gemma3 models, and tiny is of the architecture llama"),
        (
            {"changed": {QUERY: (32, WIDTH)}},
            f"changes {QUERY} of 32 x 64, and that of tiny is 64 x 64",
        ),
        (
            {"changed": {QUERY: (WIDTH, 32)}},
            f"changes {QUERY} of 64 x 32, and that of tiny is 64 x 64",
        ),
        (
            {"changed": {"blk.9.attn_q.weight": (64, 64)}},
            "blk.9.attn_q.weight, which tiny does not",
        ),
    ],
    ids=["architecture", "in", "out", "layer"],
)
def test_one_of_another_model_is_refused_with_both(
    tmp_path: Path, model: Path, written: dict[str, Any], sentence: str
) -> None:
    facts = {"general.base_model.0.name": "Other 7B"}
    path = write_tiny_adapter(tmp_path / "a.gguf", facts=facts, **written)
    with pytest.raises(ModelUnsupported, match=sentence) as raised:
        check(path, model)
    assert "its own model (Other 7B)" in str(raised.value)


@pytest.mark.parametrize(
    ("written", "error", "sentence"),
    [
        (
            {"facts": {"general.type": "model"}},
            ModelUnsupported,
            r"no LoRA adapter but a model \(llama\)",
        ),
        ({"facts": {"adapter.type": "ia3"}}, ModelUnsupported, r"of another kind \(ia3\)"),
        (
            {"left_out": f"{QUERY}.lora_b", "changed": {QUERY: (64, 64)}},
            ModelDamaged,
            f"half of {QUERY}",
        ),
        ({"changed": {}}, ModelDamaged, "changes nothing"),
        ({"added": {"lm_head.bias": (64,)}}, ModelUnsupported, "also replaces lm_head.bias"),
        (
            {"changed": {}, "added": {f"{QUERY}.lora_a": (4, 64), f"{QUERY}.lora_b": (64, 5)}},
            ModelDamaged,
            "two parts of blk.0.attn_q.weight are 64 x 4 and 5 x 64",
        ),
    ],
    ids=["model", "kind", "half", "nothing", "bias", "ranks"],
)
def test_what_llama_cpp_cannot_apply_is_refused(
    tmp_path: Path, model: Path, written: dict[str, Any], error: type[ModelError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        check(write_tiny_adapter(tmp_path / "a.gguf", **written), model)


def test_a_file_that_breaks_off_anywhere_is_damaged(tmp_path: Path) -> None:
    whole = write_tiny_adapter(tmp_path / "a.gguf").read_bytes()
    for size in (0, 3, 8, 100, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "cut.gguf"
        path.write_bytes(whole[:size])
        with pytest.raises(ModelDamaged, match="cut.gguf"):
            check_adapter_file(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="There is no adapter at"):
        check_adapter_file(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="is not a file"):
        check_adapter_file(tmp_path)


def test_a_lora_that_waits_for_its_own_words_is_refused(tmp_path: Path) -> None:
    """llama.cpp would let it act from the first token on."""
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_array("adapter.alora.invocation_tokens", [1, 2])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelUnsupported, match="aLoRA"):
        check_adapter_file(tmp_path / "a.gguf")
