"""A llama.cpp context as KV memory: cells addressed by sequence id, and guarded decoding.

llama.cpp ends the whole process on some mistakes of its caller, so every call that can do so is
checked here before it is made.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.abort_flag import AbortFlag
from engine.backends.llama_cpp.adapter import LlamaAdapter, apply_adapters
from engine.backends.llama_cpp.context_params import kv_namespace, make_params
from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.library import bindings, collected_log
from engine.backends.llama_cpp.memory_need import check_memory
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.model_shape import MAX_TWINS
from engine.backends.llama_cpp.state_blob import StateShape
from engine.backends.llama_cpp.step_batch import MediaPart, Part, StepBatch
from engine.batch import MAX_GUESSED
from engine.clock import Spent
from engine.errors import OutOfMemory
from engine.kv.segment import Blob

_last_position = bindings.llama_memory_seq_pos_max
_BYTES = ctypes.POINTER(ctypes.c_uint8)
_NO_CELLS = 1
_FAILURES = {_NO_CELLS: StepFailure.NO_ROOM, 2: StepFailure.ABORTED}


class BrokenCall(Exception):
    """We asked llama.cpp for something it would have aborted on; a fault of ours."""


class LlamaContext:
    """Owned by the engine thread.

    # [0, num_sequences)  the sequences of the contract
    # num_sequences       the scratch: a range of tokens on its way in or out; empty between calls
    # above               with a sliding window, a twin of each: it holds the same cells
    """

    def __init__(
        self,
        model: LlamaModel,
        *,
        num_cells: int,
        num_sequences: int,
        max_batch_tokens: int,
        kv_type: KVType = "f16",
        beside_bytes: int = 0,
        adapters: Sequence[LlamaAdapter] = (),
    ) -> None:
        """`beside_bytes`: memory that must be left for something else. Raises a ModelError."""
        self._model = model
        self._num_sequences = num_sequences
        self._twin_offset = 0
        if self.can_cut and model.window_tokens:
            # llama.cpp gives away cells that have left the window, unless two sequences hold
            # them; without them a fork or a cut further back would miss what it looks at.
            self._num_sequences = min(num_sequences, MAX_TWINS)
            self._twin_offset = self._num_sequences + 1
        num_ids = model.context_shape.num_ids(num_sequences)
        check_memory(
            model,
            num_cells=num_cells,
            num_ids=num_ids,
            max_batch_tokens=max_batch_tokens,
            kv_type=kv_type,
            beside_bytes=beside_bytes,
        )
        params = make_params(
            num_cells=num_cells,
            num_sequences=num_ids,
            max_batch_tokens=max_batch_tokens,
            kv_type=kv_type,
        )
        self._namespace = kv_namespace(params, model, tuple(each.kv_name for each in adapters))
        with collected_log() as log:
            self._pointer: Any = bindings.llama_init_from_model(model.pointer, params)
            if not self._pointer:
                raise OutOfMemory(
                    f"A context of {num_cells:,} tokens could not be made"
                    f" ({log[-1] if log else 'no reason was given'}): choose a smaller context in"
                    " the settings or close other programs."
                )
        if adapters:
            try:
                apply_adapters(self._pointer, adapters)
            except BaseException:
                self.close()
                raise
        self._memory = bindings.llama_get_memory(self._pointer)
        self._num_cells: int = bindings.llama_n_ctx(self._pointer)
        self._num_vocabulary = model.vocabulary.num_tokens
        self._num_rows = 0
        self._shape = StateShape(
            has_attention=self.can_cut or model.is_hybrid, is_recurrent=not self.can_cut
        )
        # A state that was half computed is lost whole, and its neighbours' too: such a step is
        # short, and runs to its end.
        self._can_abort = self.can_cut
        self.computing = Spent()
        self._logits_place = (0, 0)
        self._logits: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self._batch = StepBatch(
            min(max_batch_tokens, bindings.llama_n_batch(self._pointer)),
            twin_offset=self._twin_offset,
        )
        self._abort_flag = AbortFlag(self._pointer)

    @property
    def num_cells(self) -> int:
        return self._num_cells

    @property
    def num_sequences(self) -> int:
        return self._num_sequences

    @property
    def can_cut(self) -> bool:
        return not self._model.is_recurrent

    @property
    def max_export_tokens(self) -> int:
        # llama.cpp leaves out what the last token of the range does not see.
        return self._model.window_tokens or self._num_cells

    @property
    def namespace(self) -> bytes:
        return self._namespace

    def length(self, sequence_id: int) -> int:
        self._check_sequence(sequence_id)
        return self._end(sequence_id)

    def fork(self, source: int, target: int, num_tokens: int) -> None:
        if self.length(source) < num_tokens or self.length(target) != 0:
            raise BrokenCall(f"fork {source} -> {target} at {num_tokens}")
        self._share(source, target, 0, num_tokens)
        if self.length(target) != num_tokens:
            raise BrokenCall(f"fork {source} -> {target} gave {self.length(target)} tokens")

    def truncate(self, sequence_id: int, num_tokens: int) -> bool:
        self._check_sequence(sequence_id)
        return self._remove(sequence_id, num_tokens)

    def free(self, sequence_id: int) -> None:
        self._check_sequence(sequence_id)
        self._remove(sequence_id, 0)

    def clear(self) -> None:
        self._check_open()
        bindings.llama_memory_clear(self._memory, True)

    def export(self, sequence_id: int, start: int, end: int) -> Blob | None:
        length = self.length(sequence_id)
        if not 0 <= start < end <= length:
            return None
        if not self.can_cut:
            return self._state(sequence_id, start, end) if (start, end) == (0, length) else None
        if end - start > self.max_export_tokens:
            return None
        bindings.llama_memory_seq_cp(self._memory, sequence_id, self._scratch, start, end)
        blob = self._state(self._scratch, start, end)
        self._remove(self._scratch, 0)
        return blob

    def restore(self, sequence_id: int, blob: Blob, start: int, end: int, num_tokens: int) -> bool:
        held = self.length(sequence_id)
        if not start <= held < num_tokens <= end:
            return False
        if not self.can_cut:
            is_whole = held == start == 0 and num_tokens == end
            return is_whole and self._read(sequence_id, blob, start, end)
        if held and bindings.llama_memory_seq_pos_min(self._memory, sequence_id) != 0:
            return False
        if not self._read(self._scratch, blob, start, end):
            return False
        self._share(self._scratch, sequence_id, held, num_tokens)
        self._remove(self._scratch, 0)
        if self._end(sequence_id) == num_tokens:
            return True
        self._remove(sequence_id, held)
        return False

    def cut(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        self._check_open()
        if not self.can_cut or not 0 < num_tokens <= end - start:
            return None
        if not self._read(self._scratch, blob, start, end):
            return None
        self._remove(self._scratch, start + num_tokens)
        shorter = self._state(self._scratch, start, start + num_tokens)
        self._remove(self._scratch, 0)
        return shorter

    def set_threads(self, count: int) -> None:
        self._check_open()
        bindings.llama_set_n_threads(self._pointer, count, count)

    def decode(self, parts: list[Part]) -> StepFailure | None:
        """Compute the parts, each sequence at most once. None: done.

        Logits are kept of the tokens that want them, in their order. After a failure each sequence
        holds a beginning that is right, which may be nothing.
        """
        code = self._decode(parts, self._check_parts(parts))
        if code == 0:
            self._num_rows = sum([part.num_rows for part in parts])
            return None
        self._num_rows = 0
        self._repair(parts)
        return _FAILURES.get(code, StepFailure.BROKEN)

    def decode_media(self, part: MediaPart) -> StepFailure | None:
        """Compute places of a picture or a sound; None: done. There are no logits of them, and
        those of an earlier step are gone. After a failure the sequence holds what it held."""
        self._check_media(part)
        self._num_rows = 0
        self._batch.fill_media(part)
        if part.is_whole:
            bindings.llama_set_causal_attn(self._pointer, False)
        try:
            with self.computing:
                code = int(bindings.llama_decode(self._pointer, self._batch.pointer))
        finally:
            self._batch.clear_media()
            if part.is_whole:
                bindings.llama_set_causal_attn(self._pointer, True)
        if code == 0:
            return None
        self._repair([Part(part.sequence_id, part.start, [], 0)])
        return _FAILURES.get(code, StepFailure.BROKEN)

    def _check_media(self, part: MediaPart) -> None:
        """Raises where llama.cpp would end the process."""
        held = self.length(part.sequence_id)
        if held != part.start:
            raise BrokenCall(f"sequence {part.sequence_id} holds {held} tokens, not {part.start}")
        num_places, width = part.embeddings.shape
        if width != self._model.input_width:
            raise BrokenCall(f"embeddings of {width} numbers")
        if not 0 < num_places <= self._batch.size:
            raise BrokenCall(f"a batch of {num_places} places, at most {self._batch.size} fit")
        if part.embeddings.dtype != np.float32 or not part.embeddings.flags.c_contiguous:
            raise BrokenCall("embeddings that do not lie one after the other")

    def _decode(self, parts: list[Part], num_tokens: int) -> int:
        self._batch.fill(parts, num_tokens)
        with self.computing:
            return int(bindings.llama_decode(self._pointer, self._batch.pointer))

    def _check_parts(self, parts: list[Part]) -> int:
        """How many tokens they have together. Raises where llama.cpp would end the process."""
        self._check_open()
        num_tokens = 0
        memory, num_vocabulary = self._memory, self._num_vocabulary
        num_sequences, num_rows = self._num_sequences, 0
        for sequence_id, start, token_ids, rows in parts:
            num_rows += rows
            if not 0 <= sequence_id < num_sequences:
                raise BrokenCall(f"sequence {sequence_id} of {num_sequences}")
            held = _last_position(memory, sequence_id) + 1
            if held != start:
                raise BrokenCall(f"sequence {sequence_id} holds {held} tokens, not {start}")
            if len(token_ids) == 1:
                num_tokens += 1
                is_known = 0 <= token_ids[0] < num_vocabulary
            else:
                num_tokens += len(token_ids)
                is_known = min(token_ids, default=-1) >= 0 and max(token_ids) < num_vocabulary
            if not is_known:
                raise BrokenCall(f"no tokens, or one outside the vocabulary of {num_vocabulary:,}")
        if not 0 < num_tokens <= self._batch.size:
            raise BrokenCall(f"a batch of {num_tokens} tokens, at most {self._batch.size} fit")
        if num_rows > num_sequences + MAX_GUESSED:
            raise BrokenCall(f"{num_rows} rows of logits are wanted")
        if len(parts) != len({part[0] for part in parts}):
            raise BrokenCall("a sequence twice in a batch")
        return num_tokens

    def _repair(self, parts: list[Part]) -> None:
        """After a failed computation, leave no sequence with something half done."""
        for sequence_id, start, *_ in parts:
            length = self.length(sequence_id)
            if not self.can_cut and length != start:
                # A recurrent state that was half computed cannot be put back, and looks complete.
                self.free(sequence_id)
            elif self._twin_offset:
                # llama.cpp takes what failed from one of the two owners only.
                twin = self._end(sequence_id + self._twin_offset)
                self._remove(sequence_id, min(length, twin))

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
        if self._can_abort:
            self._abort_flag.hoist()

    def accept_steps(self) -> None:
        self._abort_flag.strike()

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

    @property
    def _scratch(self) -> int:
        return self._num_sequences

    def _end(self, sequence_id: int) -> int:
        return int(_last_position(self._memory, sequence_id)) + 1

    def _share(self, source: int, target: int, start: int, end: int) -> None:
        bindings.llama_memory_seq_cp(self._memory, source, target, start, end)
        if self._twin_offset:
            twin = target + self._twin_offset
            bindings.llama_memory_seq_cp(self._memory, source, twin, start, end)

    def _remove(self, sequence_id: int, start: int) -> bool:
        """Forget the tokens from `start` on."""
        if self._twin_offset and sequence_id != self._scratch:
            twin = sequence_id + self._twin_offset
            bindings.llama_memory_seq_rm(self._memory, twin, start, -1)
        return bool(bindings.llama_memory_seq_rm(self._memory, sequence_id, start, -1))

    def _state(self, sequence_id: int, start: int, end: int) -> Blob | None:
        """What a sequence holds, if that is exactly the tokens [start, end)."""
        size = int(bindings.llama_state_seq_get_size(self._pointer, sequence_id))
        blob = np.empty(size, np.uint8)
        written = bindings.llama_state_seq_get_data(
            self._pointer, blob.ctypes.data_as(_BYTES), size, sequence_id
        )
        return blob if written == size and self._shape.is_state(blob, start, end) else None

    def _read(self, sequence_id: int, blob: Blob, start: int, end: int) -> bool:
        """Put the tokens [start, end) into an empty sequence. False: it is empty still."""
        if not self._shape.is_state(blob, start, end):
            return False
        read = bindings.llama_state_seq_set_data(
            self._pointer, blob.ctypes.data_as(_BYTES), len(blob), sequence_id
        )
        if read == len(blob) and self._end(sequence_id) == end:
            return True
        self._remove(sequence_id, 0)
        return False
