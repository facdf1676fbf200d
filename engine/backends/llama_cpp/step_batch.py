"""The batch that llama.cpp computes, over numpy's memory: filling it is a few copies."""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.library import bindings


class Part(NamedTuple):
    """The tokens of one sequence in a step, from position `start` on.

    The logits after the last `num_rows` of them are wanted.
    """

    sequence_id: int
    start: int
    token_ids: list[int]
    num_rows: int


class MediaPart(NamedTuple):
    """Places of one sequence from position `start` on, as `embeddings` `[num_places, width]`.

    `is_whole`: they look at one another, the later ones too.
    """

    sequence_id: int
    start: int
    embeddings: NDArray[np.float32]
    is_whole: bool


class StepBatch:
    """Owned by the context. With a `twin_offset`, so much above each sequence is another one
    that holds every token too."""

    def __init__(self, size: int, *, twin_offset: int = 0) -> None:
        self.size = size
        num_owners = 2 if twin_offset else 1
        self._twin_offset = twin_offset
        self._tokens = np.zeros(size, np.int32)
        self._positions = np.zeros(size, np.int32)
        self._owners = np.zeros((size, num_owners), np.int32)
        self._sequences = self._owners[:, 0]
        self._twins = self._owners[:, 1] if twin_offset else None
        self._wanted = np.zeros(size, np.int8)
        self._num_owners = np.full(size, num_owners, np.int32)
        self._views = tuple(
            array.data for array in (self._tokens, self._sequences, self._positions, self._wanted)
        )
        rows = self._owners.ctypes.data + self._owners.strides[0] * np.arange(size)
        self._owner_rows = rows.astype(np.uintp)
        batch = bindings.llama_batch()
        fields = dict(batch._fields_)
        for name, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", self._num_owners),
            ("seq_id", self._owner_rows),
            ("logits", self._wanted),
        ):
            setattr(batch, name, ctypes.cast(array.ctypes.data, fields[name]))
        self.pointer: Any = batch
        # What a field gives is the field itself, so its value is made again.
        self._token_place = ctypes.cast(self._tokens.ctypes.data, fields["token"])
        self._no_tokens, self._no_embeddings = fields["token"](), fields["embd"]()
        self._embedding_type = fields["embd"]

    def fill(self, parts: list[Part], num_tokens: int) -> None:
        """Put the parts one behind the other; together they have `num_tokens`."""
        if num_tokens == len(parts):
            self._fill_one_each(parts)
        else:
            self._wanted[:num_tokens] = 0
            end = 0
            for part in parts:
                start, end = end, end + len(part.token_ids)
                self._tokens[start:end] = part.token_ids
                self._sequences[start:end] = part.sequence_id
                self._positions[start:end] = np.arange(part.start, part.start + end - start)
                self._wanted[end - part.num_rows : end] = 1
        if self._twins is not None:
            np.add(self._sequences[:num_tokens], self._twin_offset, out=self._twins[:num_tokens])
        self.pointer.n_tokens = num_tokens

    def fill_media(self, part: MediaPart) -> None:
        """Put embeddings in the place of tokens, until `clear_media`. They must stay alive."""
        num_places = len(part.embeddings)
        self._sequences[:num_places] = part.sequence_id
        self._positions[:num_places] = np.arange(part.start, part.start + num_places)
        self._wanted[:num_places] = 0
        if self._twins is not None:
            np.add(self._sequences[:num_places], self._twin_offset, out=self._twins[:num_places])
        self.pointer.n_tokens = num_places
        self.pointer.token = self._no_tokens
        self.pointer.embd = ctypes.cast(part.embeddings.ctypes.data, self._embedding_type)

    def clear_media(self) -> None:
        self.pointer.token, self.pointer.embd = self._token_place, self._no_embeddings

    def _fill_one_each(self, parts: list[Part]) -> None:
        """A decode step: single numbers go into a memoryview in half the time."""
        tokens, sequences, positions, wanted = self._views
        for index, (sequence_id, start, token_ids, num_rows) in enumerate(parts):
            tokens[index] = token_ids[0]
            sequences[index] = sequence_id
            positions[index] = start
            wanted[index] = num_rows
