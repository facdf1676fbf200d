"""The names of quantisations, in file names and as numbers."""

import pytest

from app.models.quantizations import explained, named, quantization_of


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("qwen2.5-7b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("folder/Qwen3-8B-Q8_0.gguf", "Q8_0"),
        ("model-IQ4_XS.gguf", "IQ4_XS"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("Phi-3-mini-4k-instruct-q4.gguf", "Q4"),
        ("Phi-3-mini-4k-instruct-fp16.gguf", "F16"),
        ("llama-bf16.gguf", "BF16"),
        ("Q4-tales.gguf", "Q4"),
        ("plain.gguf", ""),
        ("f16fighter.gguf", ""),
    ],
)
def test_a_file_name_says_its_quantisation(name: str, wanted: str) -> None:
    assert quantization_of(name) == wanted


def test_what_nobody_knows_is_empty() -> None:
    assert (explained("Q99"), named(-1), named(15)) == ("", "", "Q4_K_M")
