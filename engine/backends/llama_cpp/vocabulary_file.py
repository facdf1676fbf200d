"""The vocabulary and the chat template of a GGUF file, without its weights."""

import os
from dataclasses import dataclass
from pathlib import Path

from engine.backends.llama_cpp.library import ModelHandle, bindings, collected_log
from engine.backends.llama_cpp.model import load_error
from engine.backends.llama_cpp.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class VocabularyFile:
    """For a model that something else than llama.cpp computes."""

    vocabulary: Vocabulary
    chat_template: str | None


def read_vocabulary(path: Path) -> VocabularyFile:
    """Raises the ModelError that says why it cannot be read."""
    params = bindings.llama_model_default_params()
    params.vocab_only = True
    params.n_gpu_layers = 0
    with collected_log() as log:
        pointer = bindings.llama_model_load_from_file(os.fsencode(path), params)
        if not pointer:
            raise load_error(path, log)
    handle = ModelHandle(pointer)
    template: bytes | None = bindings.llama_model_chat_template(pointer, None)
    return VocabularyFile(
        Vocabulary(handle), template.decode("utf-8", "replace") if template else None
    )
