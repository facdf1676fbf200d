"""One generation, from submission to its last token."""

from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count

import numpy as np
from numpy.typing import NDArray

from engine.guided.answer import Guidance
from engine.kv.segment import NOBODY, Belonging
from engine.logprobs import TokenChoice
from engine.media import MediaSpan
from engine.metrics import Timings
from engine.sampling_params import SamplingParams

_request_ids = count()

GRID_TOKENS = 64
"""Where bits must not depend on what was held before, prompts are read in pieces that end at
multiples of this. With flash attention llama.cpp computes 64 queries at a time."""

# So many tokens of an answer that are known before they are computed are read in the step of
# those who write; more are read in pieces, like a prompt.
MAX_RUN = 16


class FinishReason(Enum):
    """Why a generation ended."""

    STOP = "stop"
    """An end token or a stop text."""
    LENGTH = "length"
    """`max_tokens`, the end of the context, or the loop guard."""
    ABORT = "abort"
    """The reader cancelled."""
    GRAMMAR_INCOMPLETE = "grammar_incomplete"
    """The answer ended before it had the form that was asked for."""


class RequestStatus(Enum):
    """Where a request stands."""

    WAITING = auto()
    """Not admitted: holds no sequence."""
    RUNNING = auto()
    """Holds a sequence; its prompt is being read or its answer written."""
    FINISHED = auto()
    """Will not be computed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """How a request is treated, beside how its tokens are chosen.

    `belonging` says what may become of the KV that it leaves behind.
    """

    belonging: Belonging = NOBODY
    is_background: bool = False
    """It waits for everyone else, forks instead of taking over a conversation's seat, and leaves
    nothing behind."""
    is_preparation: bool = False
    """It ends when its prompt is read, in the background; what it read stays, for the next turn."""
    is_reproducible: bool = False
    """The same prompt gives the same bits, whatever is held and whoever else runs: it is computed
    alone and in pieces on a fixed grid."""
    num_logprobs: int | None = None
    """Each output says how likely its tokens were, and so many alternatives of each. Then no token
    comes without having been looked at."""
    num_candidates: int = 0
    """It ends when its prompt is read, with so many of the tokens that may come next: its last
    output has one choice, of which they are the alternatives."""

    shows_logits: bool = False
    """It ends when its prompt is read, and its last output has the logits of what comes next."""

    @property
    def ends_when_read(self) -> bool:
        return self.is_preparation or self.shows_logits or self.num_candidates > 0

    @property
    def is_in_background(self) -> bool:
        return self.is_background or self.is_preparation


IN_FRONT = RequestOptions()
"""Somebody waits for it, and it leaves its KV to whoever continues it."""


@dataclass(slots=True, eq=False)
class Request:
    """What the scheduler knows about one generation.

    Owned by the engine thread. `token_ids` holds the prompt and then whatever was generated;
    only the engine's step appends to it.

    # [0, num_computed_tokens)           in the KV cells of its sequence
    # [num_computed_tokens, num_tokens)  not computed yet; never empty when a step begins

    `num_cached_tokens` of the prompt were held in cells when it was admitted for the first time,
    and `num_restored_tokens` more came back from the store.
    """

    token_ids: list[int]
    params: SamplingParams
    options: RequestOptions = IN_FRONT
    guidance: Guidance | None = None
    """The form of its answer, or none."""
    beginning: tuple[int, ...] = ()
    """The tokens that its answer begins with, which nobody draws."""
    spans: tuple[MediaSpan, ...] = ()
    """The pictures and sounds of its prompt, in their order; the last token is in none."""
    request_id: int = field(default_factory=lambda: next(_request_ids))
    status: RequestStatus = RequestStatus.WAITING
    sequence_id: int | None = None
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    num_restored_tokens: int = 0
    restore_ms: float = 0.0
    is_from_disk: bool = False
    """Some of the restored tokens were on the disk only."""
    num_preemptions: int = 0
    draft: tuple[int, ...] = ()
    """What may come next, guessed for the next step alone."""
    has_failed: bool = False
    """A step could not compute it, and it was read again once."""
    is_forgotten: bool = False
    """Its conversation was deleted while it waited or ran."""
    num_prompt_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_prompt_tokens = len(self.token_ids)

    @property
    def seat_id(self) -> int:
        """The sequence of a running request."""
        assert self.sequence_id is not None, "a request that waits has no sequence"
        return self.sequence_id

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def belonging(self) -> Belonging:
        """Whose words its tokens are, as things stand."""
        return NOBODY if self.is_forgotten else self.options.belonging

    @property
    def leaves_nothing(self) -> bool:
        """Nobody continues it, so its KV goes when it ends."""
        return self.options.is_background or self.is_forgotten

    @property
    def next_span(self) -> MediaSpan | None:
        """The first picture or sound that is not computed to its end."""
        return next((span for span in self.spans if span.end > self.num_computed_tokens), None)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Where a state that cannot be cut back is worth storing: behind a source, for another
        question about it, and before the last token of the prompt, for another answer."""
        last = self.num_prompt_tokens - 1
        num_source = self.options.belonging.num_source_tokens
        return (num_source, last) if 0 < num_source < last else (last,)

    def reusable(self, num_held: int) -> int:
        """How many of so many tokens that are held somewhere it may go on from.

        A reproducible one goes on where its pieces end. What is computed in one step has other
        bits when it is computed in two.
        """
        if not self.options.is_reproducible:
            return num_held
        num_held -= num_held % GRID_TOKENS
        inside = (span for span in self.spans if span.is_whole and span.start < num_held < span.end)
        return next((span.start for span in inside), num_held)

    @property
    def is_prefilling(self) -> bool:
        """More is missing than the newest tokens: the prompt, or what a preemption took away."""
        num_left = self.num_tokens - self.num_computed_tokens
        return num_left > MAX_RUN or (
            num_left > 1 and self.num_computed_tokens < self.num_prompt_tokens
        )


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What one step brought for one request; the last one carries the reason and the timings.

    `token_ids` are the generated ids since the previous output, without an end token; their text
    may come later than they do, when a character or a possible stop text is incomplete.
    `num_prompt_tokens_read` grows while the prompt is read. `choices` stand beside `token_ids`
    where the request asks for them. `logits` `[num_tokens_of_vocabulary]` are a copy, as a sampler
    gets them.
    """

    request_id: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    choices: tuple[TokenChoice, ...] = ()
    num_prompt_tokens_read: int = 0
    finish_reason: FinishReason | None = None
    timings: Timings | None = None
    notice: str = ""
    logits: NDArray[np.float32] | None = field(default=None, compare=False)
