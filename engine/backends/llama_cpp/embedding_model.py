"""Texts as vectors, by a GGUF embedding model: one text at a time, in the caller's thread.

A text that is longer than the model can see is read in windows, whose vectors are averaged by
their lengths.
"""

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.gguf_file import check_file
from engine.backends.llama_cpp.gguf_header import GGUFHeader, read_header
from engine.backends.llama_cpp.library import ModelHandle, bindings, collected_log
from engine.backends.llama_cpp.model import load_error
from engine.errors import EngineError, ModelUnsupported

MOST_TOKENS = 512
"""In one window: passages are shorter, and what is computed grows with the square."""


class Pooling(IntEnum):
    """How the vectors of tokens become that of a text, by llama.cpp's numbers."""

    NONE = 0
    MEAN = 1
    CLS = 2
    LAST = 3
    RANK = 4


@dataclass(frozen=True, slots=True)
class EmbeddingInfo:
    """What a file says of itself.

    `wants_normal`: its vocabulary was made of normalised text (NFKC) and has no table for that.
    """

    name: str
    architecture: str
    width: int
    pooling: Pooling
    num_words: int
    wants_normal: bool


class EmbeddingModel:
    """Owned by one thread."""

    def __init__(self, path: Path) -> None:
        """Raises ModelError: among others for a model that gives no vector of a whole text."""
        check_file(path)
        params = bindings.llama_model_default_params()
        params.n_gpu_layers = 0
        with collected_log() as log:
            pointer = bindings.llama_model_load_from_file(os.fsencode(path), params)
            if not pointer:
                raise load_error(path, log)
        self._model = ModelHandle(pointer)
        self._vocab = bindings.llama_model_get_vocab(pointer)
        trained = int(bindings.llama_model_n_ctx_train(pointer))
        self.max_tokens = min(trained, MOST_TOKENS) if trained > 0 else MOST_TOKENS
        self._context = self._new_context(path)
        pooling = Pooling(bindings.llama_pooling_type(self._context))
        self.info = _info(path, read_header(path), self._vocab, pointer, pooling)
        if pooling in (Pooling.NONE, Pooling.RANK):
            self.close()
            raise ModelUnsupported(_refusal(path, pooling))
        self._batch = bindings.llama_batch_init(self.max_tokens, 0, 1)

    def _new_context(self, path: Path) -> Any:
        params = bindings.llama_context_default_params()
        # All of a text is seen at once, so it has to be computed at once.
        params.n_ctx = params.n_batch = params.n_ubatch = self.max_tokens
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = 1
        params.embeddings = True
        params.pooling_type = bindings.LLAMA_POOLING_TYPE_UNSPECIFIED
        with collected_log() as log:
            context = bindings.llama_init_from_model(self._model.pointer, params)
            if not context:
                raise load_error(path, log)
        return context

    def close(self) -> None:
        if self._context is not None:
            bindings.llama_free(self._context)
            self._context = None

    def embed(self, text: str) -> NDArray[np.float32]:
        """Its vector, of length 1. Raises EngineError."""
        total = np.zeros(self.info.width, np.float32)
        for window in self._windows(text):
            total += len(window) * self._embed_window(window)
        length = float(np.linalg.norm(total))
        if not np.isfinite(length) or length == 0.0:
            raise EngineError(
                f"{self.info.name} computed no usable vector of a text: choose another embedding"
                " model."
            )
        return total / np.float32(length)

    def _windows(self, text: str) -> Iterator[list[int]]:
        """Token ids, each window with what the model wants before and after a text."""
        token_ids = self._tokenize(text, has_special=True)
        if len(token_ids) <= self.max_tokens:
            yield token_ids
            return
        bare = self._tokenize(text, has_special=False)
        at = next(
            start for start in range(len(token_ids)) if token_ids[start : start + len(bare)] == bare
        )
        before, after = token_ids[:at], token_ids[at + len(bare) :]
        size = self.max_tokens - len(before) - len(after)
        for start in range(0, len(bare), size):
            yield [*before, *bare[start : start + size], *after]

    def _tokenize(self, text: str, *, has_special: bool) -> list[int]:
        raw = text.encode("utf-8", "replace")
        size = len(raw) + 8
        ids = (ctypes.c_int32 * size)()
        # A control mark in a text is a text.
        num = bindings.llama_tokenize(self._vocab, raw, len(raw), ids, size, has_special, False)
        if num < 0:
            raise EngineError(f"{self.info.name} cannot divide a text into its words.")
        return list(ids[:num])

    def _embed_window(self, token_ids: list[int]) -> NDArray[np.float32]:
        batch = self._batch
        batch.n_tokens = len(token_ids)
        for position, token_id in enumerate(token_ids):
            batch.token[position] = token_id
            batch.pos[position] = position
            batch.n_seq_id[position] = 1
            batch.seq_id[position][0] = 0
            batch.logits[position] = True
        memory = bindings.llama_get_memory(self._context)
        if memory is None:
            failed = bindings.llama_encode(self._context, batch)
        else:
            bindings.llama_memory_clear(memory, True)
            failed = bindings.llama_decode(self._context, batch)
        found = None if failed else bindings.llama_get_embeddings_seq(self._context, 0)
        if not found:
            raise EngineError(f"{self.info.name} could not compute a text ({failed}).")
        return np.ctypeslib.as_array(found, (self.info.width,)).copy()


def _info(
    path: Path, header: GGUFHeader, vocab: Any, pointer: Any, pooling: Pooling
) -> EmbeddingInfo:
    return EmbeddingInfo(
        name=header.text("general.name") or path.stem,
        architecture=header.architecture,
        width=int(bindings.llama_model_n_embd_out(pointer)),
        pooling=pooling,
        num_words=int(bindings.llama_vocab_n_tokens(vocab)),
        wants_normal=header.text("tokenizer.ggml.model") == "t5"
        and "tokenizer.ggml.precompiled_charsmap" not in header.lengths,
    )


def _refusal(path: Path, pooling: Pooling) -> str:
    if pooling is Pooling.RANK:
        return (
            f"{path.name} is made for comparing two texts (a reranker) and gives no vector of one:"
            " choose an embedding model."
        )
    return (
        f"{path.name} is no embedding model: its file does not say how a text becomes a vector"
        " (pooling), as those of chat models do not; choose an embedding model."
    )
