"""A backend without a model: its KV is the tokens themselves, so a wrong reuse is noticed."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import MediaReader, ModelInfo, StepFailure
from engine.batch import Batch
from engine.config import EngineConfig
from engine.kv.segment import Blob
from engine.request import Request
from engine.sampling.draft_gate import StepCosts
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from engine.tokenizer import ControlToken

END = 256
BYTES_PER_TOKEN = 100
NUM_TOKENS = 258


class ByteTokenizer:
    """Ids 0 to 255 are bytes, 256 ends an answer, 257 begins a turn."""

    num_tokens = NUM_TOKENS
    num_end_tokens = 1
    bos_id: int | None = None
    control_tokens: Mapping[str, ControlToken] = {
        "<end>": ControlToken(END, "<end>"),
        "<turn>": ControlToken(257, "<turn>"),
    }

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", "replace"))

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < END else b""

    def is_end(self, token_id: int) -> bool:
        return token_id == END


class FakeMemory:
    """Each sequence holds `(token, cell)` pairs; a forked sequence shares the cells.

    A damaged cell stays damaged, also when it is free, until `clear`: that is how llama.cpp's
    memory behaves after a computation went wrong. `num_real_cells` may be fewer than it claims.
    """

    can_cut: bool

    def __init__(self, num_cells: int, num_sequences: int, *, can_cut: bool = True) -> None:
        self.num_cells = num_cells
        self.num_sequences = num_sequences
        self.can_cut = can_cut
        self.num_real_cells = num_cells
        self.damaged: set[int] = set()
        self.num_clears = 0
        self.num_exported = 0
        self.refuses = False
        self.max_export_tokens = 16
        self.namespace = b"fake"
        self._held: list[list[tuple[int, int]]] = [[] for _ in range(num_sequences)]

    def tokens(self, sequence_id: int) -> list[int]:
        return [token for token, _ in self._held[sequence_id]]

    def is_damaged(self, sequence_id: int) -> bool:
        return any(cell in self.damaged for _, cell in self._held[sequence_id])

    def damage(self, sequence_id: int) -> None:
        self.damaged.update(cell for _, cell in self._held[sequence_id][-1:])

    def free_cells(self) -> list[int]:
        used = {cell for held in self._held for _, cell in held}
        return [cell for cell in range(self.num_cells) if cell not in used][
            : self.num_real_cells - len(used)
        ]

    @property
    def num_unused(self) -> int:
        """Cells that are free by the books of who uses this memory."""
        return self.num_cells - len({cell for held in self._held for _, cell in held})

    def append(self, sequence_id: int, tokens: Sequence[int], cells: Sequence[int]) -> None:
        self._held[sequence_id].extend(zip(tokens, cells, strict=True))

    def length(self, sequence_id: int) -> int:
        return len(self._held[sequence_id])

    def fork(self, source: int, target: int, num_tokens: int) -> None:
        assert self.can_cut, "this memory cannot be cut"
        assert source != target and not self._held[target], "a fork onto a sequence in use"
        assert 0 < num_tokens <= len(self._held[source])
        self._held[target] = self._held[source][:num_tokens]

    def truncate(self, sequence_id: int, num_tokens: int) -> bool:
        if not self.can_cut and 0 < num_tokens < len(self._held[sequence_id]):
            return False
        del self._held[sequence_id][num_tokens:]
        return True

    def free(self, sequence_id: int) -> None:
        self._held[sequence_id].clear()

    def clear(self) -> None:
        for held in self._held:
            held.clear()
        self.damaged.clear()
        self.num_clears += 1

    def export(self, sequence_id: int, start: int, end: int) -> Blob | None:
        """The tokens [0, end), so that a blob in the wrong place is noticed, then filling."""
        tokens = self.tokens(sequence_id)
        assert 0 <= start < end <= len(tokens), "a range that is not held"
        assert end - start <= self.max_export_tokens or not self.can_cut
        assert self.can_cut or (start == 0 and end == len(tokens)), "part of a state"
        self.num_exported += end - start
        filling = np.zeros((end - start) * BYTES_PER_TOKEN, np.uint8)
        return np.concatenate([np.asarray(tokens[:end], np.int32).view(np.uint8), filling])

    def restore(self, sequence_id: int, blob: Blob, start: int, end: int, num_tokens: int) -> bool:
        held = self.length(sequence_id)
        assert start <= held < num_tokens <= end, "a hole, or nothing to restore"
        assert self.num_unused >= end - start, "no room for the blob"
        assert self.can_cut or (held == 0 and num_tokens == end), "part of a state"
        tokens = self._tokens_of(blob, start, end)
        assert tokens[:held] == self.tokens(sequence_id), "the KV of another prefix"
        if self.refuses or len(self.free_cells()) < end - start:
            return False
        self.append(sequence_id, tokens[held:num_tokens], self.free_cells()[: num_tokens - held])
        return True

    def cut(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        assert 0 < num_tokens < end - start
        assert self.num_unused >= end - start, "no room for the blob"
        tokens = self._tokens_of(blob, start, end)[: start + num_tokens]
        filling = np.zeros(num_tokens * BYTES_PER_TOKEN, np.uint8)
        return np.concatenate([np.asarray(tokens, np.int32).view(np.uint8), filling])

    def _tokens_of(self, blob: Blob, start: int, end: int) -> list[int]:
        assert blob.nbytes == 4 * end + BYTES_PER_TOKEN * (end - start), "a blob of another range"
        tokens: list[int] = blob[: 4 * end].view(np.int32).tolist()
        return tokens


class FakeRunner:
    """Checks every position and token, and can be told to fail.

    `failures` maps the number of a step (from 0) to what goes wrong in it: a StepFailure, an
    exception to raise, or how many tokens are computed before it is aborted. `has_nan` marks
    the prefixes whose logits are not numbers. Between `hold` and `let_go` a step lasts until it is
    aborted, and otherwise `seconds_a_step` longer than it takes. With `looks_back` the model sees
    no more than so many tokens, so it soon repeats itself.
    """

    def __init__(self, memory: FakeMemory, max_batch_tokens: int) -> None:
        self._memory = memory
        self._max_batch_tokens = max_batch_tokens
        self.failures: dict[int, StepFailure | Exception | int] = {}
        self.has_nan: Callable[[list[int]], bool] = lambda prefix: False
        self.batches: list[list[tuple[int, int, bool]]] = []
        self.seconds_a_step = 0.0
        self.looks_back: int | None = None
        self.is_computing = threading.Event()
        self._is_free = threading.Event()
        self._is_free.set()
        self._abort = threading.Event()

    @property
    def num_steps(self) -> int:
        return len(self.batches)

    def hold(self) -> None:
        self._is_free.clear()

    def let_go(self) -> None:
        self._is_free.set()

    @property
    def step_cost(self) -> float:
        return 1e-3

    def abort_step(self) -> None:
        self._abort.set()

    def accept_steps(self) -> None:
        self._abort.clear()

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        self._check(batch)
        failure = self.failures.pop(self.num_steps, None)
        self.batches.append(
            [(s.request.request_id, s.num_scheduled_tokens, s.is_sampled) for s in batch.scheduled]
        )
        self.is_computing.set()
        time.sleep(self.seconds_a_step)
        while not self._is_free.wait(0.001):
            if self._abort.is_set():
                return StepFailure.ABORTED
        self.is_computing.clear()
        match failure:
            case Exception():
                raise failure
            case StepFailure.BROKEN:
                for item in batch.scheduled:
                    self._memory.append(item.request.seat_id, [-1], self._memory.free_cells()[:1])
                    self._memory.damage(item.request.seat_id)
                return StepFailure.BROKEN
            case StepFailure.NO_ROOM if not self._memory.can_cut:
                # A state that was begun to be computed is gone.
                for item in batch.scheduled:
                    self._memory.free(item.request.seat_id)
                return StepFailure.NO_ROOM
            case StepFailure():
                return failure
            case int(num_tokens):
                self._compute(batch, num_tokens)
                return StepFailure.ABORTED
        if self._abort.is_set():
            return StepFailure.ABORTED
        if len(self._memory.free_cells()) < batch.num_tokens:
            return StepFailure.NO_ROOM
        return self._compute(batch, batch.num_tokens)

    def _compute(self, batch: Batch, num_tokens: int) -> NDArray[np.float32]:
        rows = []
        for item in batch.scheduled:
            token_ids = item.token_ids[:num_tokens]
            num_tokens -= len(token_ids)
            sequence = item.request.seat_id
            cells = self._memory.free_cells()[: len(token_ids)]
            self._memory.append(sequence, token_ids, cells)
            prefix = self._memory.tokens(sequence)
            is_damaged = self.has_nan(prefix) or self._memory.is_damaged(sequence)
            if is_damaged:
                self._memory.damage(sequence)
            for num_after in reversed(range(item.num_rows)):
                row = logits_after(prefix[: len(prefix) - num_after], self.looks_back)
                rows.append(np.full(NUM_TOKENS, np.nan, np.float32) if is_damaged else row)
        return np.stack(rows) if rows else np.empty((0, 0), np.float32)

    def _check(self, batch: Batch) -> None:
        assert batch.scheduled, "an empty batch"
        assert batch.num_tokens <= self._max_batch_tokens, "a batch too large"
        sequences = [item.request.seat_id for item in batch.scheduled]
        assert len(set(sequences)) == len(sequences), "one sequence twice in a batch"
        for item in batch.scheduled:
            held = self._memory.tokens(item.request.seat_id)
            assert held == item.request.token_ids[: item.start], "the KV of another prefix"
            assert item.token_ids, "nothing to compute"


class FakeBackend:
    """Held and driven by the engine like a real one."""

    kind = "fake"
    media: MediaReader | None = None
    tokenizer = ByteTokenizer()
    info = ModelInfo(
        name="fake",
        architecture="fake",
        num_parameters=1,
        quantization="none",
        trained_context=1_000_000,
        num_bytes=1,
        kv_bytes_per_token=1,
        chat_template=None,
        bos_text="",
        eos_text="<end>",
    )

    def __init__(
        self,
        config: EngineConfig,
        *,
        can_cut: bool = True,
        max_request_tokens: int | None = None,
    ) -> None:
        num_cells = config.context_tokens or 1024
        self.kv_memory = FakeMemory(num_cells, config.max_sequences, can_cut=can_cut)
        self.model_runner = FakeRunner(self.kv_memory, config.max_batch_tokens)
        self.max_request_tokens = max_request_tokens or num_cells
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class EvenCosts(StepCosts):
    """A step costs the same whatever is in it, so whatever can be guessed is."""

    is_known = True

    def learn(self, num_tokens: int, num_looks: int, seconds: float) -> None:
        pass

    def seconds(self, num_tokens: int, num_looks: int) -> float:
        return 1.0


def fake_config(
    *,
    cells: int = 256,
    running: int = 4,
    sequences: int = 6,
    batch: int = 32,
    ram: int = 1_000_000,
    disk: int = 1_000_000,
) -> EngineConfig:
    return EngineConfig(
        model_path=Path("fake.gguf"),
        context_tokens=cells,
        max_running=running,
        max_sequences=sequences,
        max_batch_tokens=batch,
        kv_ram_bytes=ram,
        kv_disk_bytes=disk,
    )


def logits_after(prefix: Sequence[int], looks_back: int | None = None) -> NDArray[np.float32]:
    """Logits that depend on every token of the prefix and on its length, or on its last ones."""
    if looks_back is not None:
        prefix = prefix[-looks_back:]
    digest = hashlib.blake2b(np.asarray(prefix, np.int32).tobytes(), digest_size=4).digest()
    return _ROWS[int.from_bytes(digest, "little") % len(_ROWS)]


def answer_alone(
    prompt: Sequence[int],
    params: SamplingParams,
    max_tokens: int,
    looks_back: int | None = None,
) -> list[int]:
    """What the fake model answers when nothing else happens."""
    request = Request(list(prompt), params)
    sampler = Sampler(ByteTokenizer())
    while request.num_output_tokens < params.max_tokens and request.num_tokens < max_tokens:
        token = sampler.sample_row(logits_after(request.token_ids, looks_back), request)
        if token == END and not params.ignore_eos:
            break
        request.token_ids.append(token)
    return request.token_ids[request.num_prompt_tokens :]


_ROWS = (4 * np.random.default_rng(7).standard_normal((251, NUM_TOKENS))).astype(np.float32)
# Now and then an answer ends by itself.
_ROWS[:8, END] = 40.0
