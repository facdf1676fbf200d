"""A GGUF vocabulary as the house's tokenizer."""

import ctypes
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from engine.backends.llama_cpp.library import ModelHandle, bindings
from engine.tokenizer import ControlToken, is_shown


class Vocabulary:
    """Safe to call from any thread: all that changes after construction is what was looked up."""

    def __init__(self, handle: ModelHandle) -> None:
        self._handle = handle
        self._vocab = bindings.llama_model_get_vocab(handle.pointer)
        self._num_tokens: int = bindings.llama_vocab_n_tokens(self._vocab)
        self._pieces: dict[int, bytes] = {}
        self._control_tokens = {token.text: token for token in self._find_control_tokens()}
        self._hidden_ids = frozenset(
            token.token_id for token in self._control_tokens.values() if not is_shown(token.text)
        )
        self._end_ids = frozenset(
            token_id
            for token_id in range(self._num_tokens)
            if bindings.llama_vocab_is_eog(self._vocab, token_id)
        )
        bos = bindings.llama_vocab_bos(self._vocab)
        wants_bos = bos >= 0 and bindings.llama_vocab_get_add_bos(self._vocab)
        self._bos_id: int | None = bos if wants_bos else None

    @property
    def pointer(self) -> Any:
        """llama.cpp's own, valid as long as this is held."""
        return self._vocab

    @property
    def num_tokens(self) -> int:
        return self._num_tokens

    @property
    def bos_id(self) -> int | None:
        return self._bos_id

    @property
    def control_tokens(self) -> Mapping[str, ControlToken]:
        return self._control_tokens

    @cached_property
    def bos_text(self) -> str:
        return self._text(bindings.llama_vocab_bos(self._vocab))

    @cached_property
    def eos_text(self) -> str:
        return self._text(bindings.llama_vocab_eos(self._vocab))

    def encode(self, text: str) -> list[int]:
        # A lone surrogate can reach us from a broken paste; it has no UTF-8.
        raw = text.encode("utf-8", "replace")
        if not raw:
            return []
        # One token a byte, and room for what a sentencepiece vocabulary puts in front.
        buffer = (bindings.llama_token * (len(raw) + 8))()
        count = bindings.llama_tokenize(
            self._vocab, raw, len(raw), buffer, len(buffer), False, False
        )
        if count < 0:
            buffer = (bindings.llama_token * -count)()
            count = bindings.llama_tokenize(
                self._vocab, raw, len(raw), buffer, len(buffer), False, False
            )
        return list(buffer[:count])

    def token_bytes(self, token_id: int) -> bytes:
        piece = self._pieces.get(token_id)
        if piece is None:
            if not 0 <= token_id < self._num_tokens:
                raise IndexError(f"token {token_id} of {self._num_tokens}")
            piece = b"" if token_id in self._hidden_ids else self._piece(token_id)
            # A call into the library lets go of the interpreter, which another thread may keep.
            self._pieces[token_id] = piece
        return piece

    def is_end(self, token_id: int) -> bool:
        return token_id in self._end_ids

    def _piece(self, token_id: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        length = bindings.llama_token_to_piece(self._vocab, token_id, buffer, 256, 0, True)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = bindings.llama_token_to_piece(self._vocab, token_id, buffer, -length, 0, True)
        return buffer.raw[:length]

    def _text(self, token_id: int) -> str:
        if not 0 <= token_id < self._num_tokens:
            return ""
        text: bytes = bindings.llama_vocab_get_text(self._vocab, token_id)
        return text.decode("utf-8", "replace")

    def _find_control_tokens(self) -> list[ControlToken]:
        tokens = []
        for token_id in range(self._num_tokens):
            attributes = bindings.llama_vocab_get_attr(self._vocab, token_id)
            if attributes & bindings.LLAMA_TOKEN_ATTR_CONTROL:
                text = self._text(token_id)
                if text:
                    tokens.append(
                        ControlToken(
                            token_id,
                            text,
                            bool(attributes & bindings.LLAMA_TOKEN_ATTR_LSTRIP),
                            bool(attributes & bindings.LLAMA_TOKEN_ATTR_RSTRIP),
                        )
                    )
        return tokens
