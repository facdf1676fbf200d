"""What every backend gives: a loaded model that turns a Batch into logits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch import Batch
from engine.errors import EngineError
from engine.kv.segment import Blob
from engine.media import Media, MediaSpan
from engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Facts about a loaded model. Sizes in bytes, context in tokens.

    `sampling` is what its file recommends, by llama.cpp's names, as text. `media_refusal` is why
    the multimodal part that was found beside the model is not used, or empty; `notice` is what the
    user should know of how the model runs here.
    """

    name: str
    architecture: str
    num_parameters: int
    quantization: str
    trained_context: int
    num_bytes: int
    kv_bytes_per_token: int
    chat_template: str | None
    bos_text: str
    eos_text: str
    sampling: Mapping[str, str] = field(default_factory=dict)
    reads_images: bool = False
    reads_audio: bool = False
    media_refusal: str = ""
    notice: str = ""


class StepFailure(Enum):
    """Why a step brought no logits. What the KV memory holds afterwards is `length()` of each."""

    ABORTED = auto()
    """`abort_step` was called while it ran; nothing is wrong."""
    NO_ROOM = auto()
    """The cells ran out; nothing was computed."""
    BROKEN = auto()
    """The computation failed; the KV memory is no longer to be trusted."""


class KVMemory(Protocol):
    """The KV cells of one loaded model, addressed by sequence id. Owned by the engine thread."""

    @property
    def num_cells(self) -> int: ...

    @property
    def num_sequences(self) -> int: ...

    @property
    def can_cut(self) -> bool:
        """Whether the KV of any range of tokens can be shared, cut off and exported.

        False for recurrent and hybrid models, whose state is one whole: then `fork` is not called,
        `truncate` may refuse, and `export` and `restore` are for all tokens of a sequence.
        """
        ...

    @property
    def max_export_tokens(self) -> int:
        """The longest range that `export` gives, where ranges can be had."""
        ...

    @property
    def namespace(self) -> bytes:
        """All that changes KV except the model file: build, types, layout, positions, adapters."""
        ...

    def length(self, sequence_id: int) -> int:
        """How many tokens the sequence holds."""
        ...

    def fork(self, source: int, target: int, num_tokens: int) -> None:
        """Let the empty `target` share the first `num_tokens` of `source`. Copies no KV."""
        ...

    def truncate(self, sequence_id: int, num_tokens: int) -> bool:
        """Keep the first `num_tokens`. False: impossible for this model, nothing changed."""
        ...

    def free(self, sequence_id: int) -> None:
        """Forget the whole sequence."""
        ...

    def clear(self) -> None:
        """Forget everything and overwrite it, so that nothing damaged is left."""
        ...

    def export(self, sequence_id: int, start: int, end: int) -> Blob | None:
        """A copy of the KV of the tokens [start, end). None: it could not be had."""
        ...

    def restore(self, sequence_id: int, blob: Blob, start: int, end: int, num_tokens: int) -> bool:
        """Let the sequence hold `num_tokens`, from a blob of the tokens [start, end).

        It holds some number in [start, num_tokens) before; what it holds stays as it is. While
        this runs `end - start` cells must be free. False: the blob was refused, nothing changed.
        """
        ...

    def cut(self, blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        """The blob of the first `num_tokens` of [start, end). None: it could not be had.

        While this runs `end - start` cells and one sequence must be free.
        """
        ...


class ModelRunner(Protocol):
    """Computes. Owned by the engine thread, except `abort_step`."""

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        """Logits `[batch.num_rows, num_tokens_of_vocabulary]`, valid until the next call."""
        ...

    @property
    def step_cost(self) -> float:
        """Seconds that the last step took of whatever computes it, as far as can be told without
        what other programs took meanwhile; good for comparing steps with one another."""
        ...

    def abort_step(self) -> None:
        """End the running step early, or else the next one, where that loses nothing that earlier
        steps computed. Any thread may call it."""
        ...

    def accept_steps(self) -> None:
        """Take back an earlier `abort_step`."""
        ...


class MediaReader(Protocol):
    """Reads pictures and sounds. The first two methods may be called by any thread, the others by
    the engine's."""

    def ids_of(self, media: Media) -> tuple[int, ...]:
        """What stands in a prompt for it. Raises UsageError or EngineError."""
        ...

    def spans_in(self, token_ids: Sequence[int]) -> tuple[MediaSpan, ...]:
        """What the ids below 0 of a prompt stand for. Raises UsageError."""
        ...

    def is_ready(self, span: MediaSpan) -> bool:
        """Whether it can be computed, or never will be; if not, that is being prepared."""
        ...

    def error_of(self, span: MediaSpan) -> EngineError | None:
        """Why it never will be. Asked again, it is tried again."""
        ...

    def let_go(self, spans: Iterable[MediaSpan], still_wanted: Iterable[MediaSpan]) -> None:
        """The first are not waited for any more, except those that are among the others."""
        ...


class Backend(Protocol):
    """A loaded model."""

    @property
    def kind(self) -> str:
        """Its name for the user, such as "llama"."""
        ...

    @property
    def info(self) -> ModelInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def kv_memory(self) -> KVMemory: ...

    @property
    def model_runner(self) -> ModelRunner: ...

    @property
    def media(self) -> MediaReader | None:
        """None: the model reads text alone."""
        ...

    @property
    def max_request_tokens(self) -> int:
        """The most tokens one request may have, prompt and answer together."""
        ...

    def close(self) -> None:
        """Give everything back. Calling it twice is harmless."""
        ...
