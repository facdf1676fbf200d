"""Which kinds of models can be run, asked without a model."""

import pytest

from engine.backends.llama_cpp.architectures import is_known_architecture


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "granite", "phi3", "mamba"])
def test_known_kinds_are_known(name: str) -> None:
    assert is_known_architecture(name)


@pytest.mark.parametrize("name", ["wonder", "", "qwen3 ", "ünknown"])
def test_others_are_not(name: str) -> None:
    assert not is_known_architecture(name)
