"""What one step computes."""

from dataclasses import dataclass

from engine.request import Request

GRID_TOKENS = 64
"""Where bits must not depend on what was held before, prompts are read in pieces that end at
multiples of this. With flash attention llama.cpp computes 64 queries at a time."""


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """`num_scheduled_tokens` of a request from position `start` on, as it was when scheduled.

    `is_sampled`: its last known token is among them, so their logits name the next one.
    """

    request: Request
    start: int
    num_scheduled_tokens: int
    is_sampled: bool

    @classmethod
    def of(cls, request: Request, num_tokens: int) -> "ScheduledRequest":
        """The next `num_tokens` of a request."""
        start = request.num_computed_tokens
        return cls(request, start, num_tokens, start + num_tokens == request.num_tokens)

    @property
    def token_ids(self) -> list[int]:
        return self.request.token_ids[self.start : self.start + self.num_scheduled_tokens]


@dataclass(frozen=True, slots=True)
class Batch:
    """Formed by the scheduler, computed by a model runner, one row of logits a sampled request."""

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
        """One new token for everybody: no prompt is being read."""
        return all(item.num_scheduled_tokens == 1 for item in self.scheduled)

    @property
    def sampled(self) -> list[Request]:
        return [item.request for item in self.scheduled if item.is_sampled]
