"""What one step computes."""

from dataclasses import dataclass

from engine.media import MediaSpan
from engine.request import MAX_RUN, Request

MAX_GUESSED = 12
"""The most tokens that are guessed in one step, of all requests together: each wants a row of
logits of its own."""


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """Some tokens of a request from position `start` on, as it was when scheduled.

    # [start, start + num_known)  its own next tokens
    # after them                  the draft: what may come next, guessed

    `is_sampled`: its last known token is among them, so their logits name the next one.
    """

    request: Request
    start: int
    num_known: int
    is_sampled: bool
    draft: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, request: Request, num_tokens: int, draft: tuple[int, ...] = ()
    ) -> "ScheduledRequest":
        """The next `num_tokens` of a request, and a draft after the last of them."""
        start = request.num_computed_tokens
        is_sampled = start + num_tokens == request.num_tokens
        return cls(request, start, num_tokens, is_sampled, draft)

    @property
    def span(self) -> MediaSpan | None:
        """The picture or sound that all its tokens stand for; None: they are tokens."""
        if not self.request.spans:
            return None
        spans = self.request.spans
        return next((span for span in spans if span.start <= self.start < span.end), None)

    @property
    def num_scheduled_tokens(self) -> int:
        return self.num_known + len(self.draft)

    @property
    def num_rows(self) -> int:
        """Rows of logits: after its last known token, and after each one that was guessed."""
        return 1 + len(self.draft) if self.is_sampled else 0

    @property
    def token_ids(self) -> list[int]:
        return [*self.request.token_ids[self.start : self.start + self.num_known], *self.draft]


@dataclass(frozen=True, slots=True)
class Batch:
    """Formed by the scheduler, computed by a model runner: rows of logits for what is sampled."""

    scheduled: tuple[ScheduledRequest, ...]

    @property
    def num_tokens(self) -> int:
        return sum(item.num_scheduled_tokens for item in self.scheduled)

    @property
    def is_reproducible(self) -> bool:
        """Computed alone, on the grid, and on a fixed number of threads."""
        return any(item.request.options.is_reproducible for item in self.scheduled)

    @property
    def is_decode(self) -> bool:
        """One new token for everybody: nothing is read and nothing was guessed."""
        return all(item.num_scheduled_tokens == 1 for item in self.scheduled)

    @property
    def is_reading(self) -> bool:
        """A piece of a prompt is among it, or of what a preemption took away."""
        return any(
            item.num_known > MAX_RUN
            or (item.num_known > 1 and item.start < item.request.num_prompt_tokens)
            for item in self.scheduled
        )

    @property
    def sampled(self) -> list[ScheduledRequest]:
        return [item for item in self.scheduled if item.is_sampled]

    @property
    def num_rows(self) -> int:
        return sum(item.num_rows for item in self.scheduled)
