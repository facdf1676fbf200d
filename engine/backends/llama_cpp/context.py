"""A llama.cpp context as KV memory: cells addressed by sequence id, and guarded decoding.

llama.cpp ends the whole process on some mistakes of its caller, so every call that can do so is
checked here before it is made.
"""

import ctypes
import sys
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from engine.backends.llama_cpp.library import bindings, collected_log
from engine.backends.llama_cpp.model import LlamaModel
from engine.clock import Spent
from engine.errors import OutOfMemory


class BrokenCall(Exception):
    """We asked llama.cpp for something it would have aborted on; a fault of ours."""


class LlamaContext:
    """Owned by the engine thread. `kv_unified`: every sequence may use every cell.

    Flash attention is on: without it a short conversation slows down with what others hold.
    """

    def __init__(
        self, model: LlamaModel, *, num_cells: int, num_sequences: int, max_batch_tokens: int
    ) -> None:
        self._model = model
        _check_memory(model, num_cells)
        params = bindings.llama_context_default_params()
        params.n_ctx = num_cells
        params.n_batch = params.n_ubatch = max_batch_tokens
        params.n_seq_max = num_sequences
        params.kv_unified = True
        params.flash_attn_type = 1
        # The whole window of a sliding layer is kept, so that a fork finds every cell.
        params.swa_full = True
        with collected_log() as log:
            self._pointer: Any = bindings.llama_init_from_model(model.pointer, params)
            if not self._pointer:
                raise OutOfMemory(
                    f"A context of {num_cells:,} tokens could not be made"
                    f" ({log[-1] if log else 'no reason was given'}): choose a smaller context in"
                    " the settings or close other programs."
                )
        self._memory = bindings.llama_get_memory(self._pointer)
        self._num_cells: int = bindings.llama_n_ctx(self._pointer)
        self._num_sequences = num_sequences
        self._max_batch_tokens: int = min(max_batch_tokens, bindings.llama_n_batch(self._pointer))
        self._num_vocabulary = model.vocabulary.num_tokens
        self._num_rows = 0
        self.computing = Spent()
        self._logits_place = (0, 0)
        self._logits: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self._make_batch()
        self._install_abort_flag()

    @property
    def num_cells(self) -> int:
        return self._num_cells

    @property
    def num_sequences(self) -> int:
        return self._num_sequences

    @property
    def can_cut(self) -> bool:
        return not self._model.is_recurrent

    def length(self, sequence_id: int) -> int:
        self._check_sequence(sequence_id)
        return int(bindings.llama_memory_seq_pos_max(self._memory, sequence_id)) + 1

    def fork(self, source: int, target: int, num_tokens: int) -> None:
        if self.length(source) < num_tokens or self.length(target) != 0:
            raise BrokenCall(f"fork {source} -> {target} at {num_tokens}")
        bindings.llama_memory_seq_cp(self._memory, source, target, 0, num_tokens)
        if self.length(target) != num_tokens:
            raise BrokenCall(f"fork {source} -> {target} gave {self.length(target)} tokens")

    def truncate(self, sequence_id: int, num_tokens: int) -> bool:
        self._check_sequence(sequence_id)
        return bool(bindings.llama_memory_seq_rm(self._memory, sequence_id, num_tokens, -1))

    def free(self, sequence_id: int) -> None:
        self._check_sequence(sequence_id)
        bindings.llama_memory_seq_rm(self._memory, sequence_id, -1, -1)

    def clear(self) -> None:
        self._check_open()
        bindings.llama_memory_clear(self._memory, True)

    def set_threads(self, count: int) -> None:
        self._check_open()
        bindings.llama_set_n_threads(self._pointer, count, count)

    def decode(self, parts: list[tuple[int, int, list[int], bool]]) -> int:
        """Compute `(sequence_id, first_position, token_ids, wants_logits)`, each sequence once.

        Logits are kept for the last token of the parts that want them, in their order. Returns
        llama.cpp's code: 0 done, 1 no cells (nothing changed), 2 aborted, below 0 failed. After
        an abort each sequence holds a beginning that is right, which may be nothing.
        """
        end = 0
        seen: set[int] = set()
        self._wanted[: self._max_batch_tokens] = 0
        for sequence_id, position, token_ids, wants_logits in parts:
            start, end = end, end + len(token_ids)
            if end > self._max_batch_tokens or not token_ids or sequence_id in seen:
                raise BrokenCall(f"a batch of {end} tokens, at most {self._max_batch_tokens} fit")
            held = self.length(sequence_id)
            if held != position:
                raise BrokenCall(f"sequence {sequence_id} holds {held} tokens, not {position}")
            seen.add(sequence_id)
            if min(token_ids) < 0 or max(token_ids) >= self._num_vocabulary:
                raise BrokenCall(f"a token outside the vocabulary of {self._num_vocabulary:,}")
            self._fill(start, end, sequence_id, position, token_ids)
            self._wanted[end - 1] = wants_logits
        if end == 0:
            raise BrokenCall("an empty batch")
        self._batch.n_tokens = end
        with self.computing:
            code = int(bindings.llama_decode(self._pointer, self._batch))
        self._num_rows = sum(wants_logits for *_, wants_logits in parts) if code == 0 else 0
        if code != 0 and not self.can_cut:
            # A recurrent state that was half computed cannot be put back, and looks complete.
            for sequence_id, position, *_ in parts:
                if self.length(sequence_id) != position:
                    self.free(sequence_id)
        return code

    def _fill(
        self, start: int, end: int, sequence_id: int, position: int, token_ids: list[int]
    ) -> None:
        """Put the tokens of one sequence into [start, end) of the batch."""
        if end - start == 1:
            # The case of every decode step, three times as fast as the general one.
            self._tokens[start] = token_ids[0]
            self._sequences[start] = sequence_id
            self._positions[start] = position
        else:
            self._tokens[start:end] = token_ids
            self._sequences[start:end] = sequence_id
            self._positions[start:end] = np.arange(position, position + end - start)

    def logits(self, num_rows: int) -> NDArray[np.float32]:
        """`[num_rows, num_vocabulary]`: llama.cpp's own memory, valid until the next decode."""
        self._check_open()
        if num_rows != self._num_rows or num_rows == 0:
            raise BrokenCall(f"{num_rows} rows of logits, and {self._num_rows} were computed")
        pointer = bindings.llama_get_logits(self._pointer)
        # The same memory in nearly every step, so its array is made once.
        place = ctypes.addressof(pointer.contents), num_rows
        if place != self._logits_place:
            self._logits_place = place
            self._logits = np.ctypeslib.as_array(pointer, (num_rows, self._num_vocabulary))
        return self._logits

    def abort_step(self) -> None:
        self._abort_flag[0] = b"\x01"

    def accept_steps(self) -> None:
        self._abort_flag[0] = b"\x00"

    def close(self) -> None:
        if self._pointer:
            bindings.llama_free(self._pointer)
            self._pointer = None

    def _check_open(self) -> None:
        if not self._pointer:
            raise BrokenCall("the context was closed")

    def _check_sequence(self, sequence_id: int) -> None:
        self._check_open()
        if not 0 <= sequence_id < self._num_sequences:
            raise BrokenCall(f"sequence {sequence_id} of {self._num_sequences}")

    def _make_batch(self) -> None:
        """A batch over numpy's memory: filling it is one copy instead of a call per token."""
        size = self._max_batch_tokens
        self._tokens = np.zeros(size, np.int32)
        self._positions = np.zeros(size, np.int32)
        self._sequences = np.zeros(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        self._num_sequences_of = np.ones(size, np.int32)
        first = self._sequences.ctypes.data
        self._sequence_pointers = (first + 4 * np.arange(size)).astype(np.uintp)
        batch = bindings.llama_batch()
        fields = dict(batch._fields_)
        for name, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", self._num_sequences_of),
            ("seq_id", self._sequence_pointers),
            ("logits", self._wanted),
        ):
            setattr(batch, name, ctypes.cast(array.ctypes.data, fields[name]))
        self._batch = batch

    def _install_abort_flag(self) -> None:
        """llama.cpp asks `strlen(flag)` after every graph node: no GIL, no Python, one byte.

        A non-empty text means abort. The flag must stay alive as long as the context.
        """
        self._abort_flag = ctypes.create_string_buffer(2)
        library = "ucrtbase" if sys.platform == "win32" else None
        strlen = ctypes.CDLL(library).strlen
        bindings.llama_set_abort_callback(
            self._pointer,
            ctypes.cast(strlen, bindings.ggml_abort_callback),
            ctypes.cast(self._abort_flag, ctypes.c_void_p),
        )


def _check_memory(model: LlamaModel, num_cells: int) -> None:
    """llama.cpp takes the memory first and touches it then: the system would end the process."""
    if model.is_recurrent:
        # Most of its layers need no memory per token, so the figure says nothing.
        return
    needed = num_cells * model.kv_bytes_per_token
    available = psutil.virtual_memory().available
    if needed > available:
        raise OutOfMemory(
            f"A context of {num_cells:,} tokens needs {needed / 1e9:,.1f} GB and"
            f" {available / 1e9:,.1f} GB of memory are free: choose a smaller context in the"
            " settings or close other programs."
        )
