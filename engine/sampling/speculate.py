"""Guess what comes next, where that is likely to come true and pays.

The guesses are computed together with the newest token, and each that was right spares a step. They
are compared with what really comes also while nothing is guessed in earnest, so it costs nothing
to know when guessing begins to pay, and when it stops.
"""

from collections.abc import Sequence

from engine.batch import MAX_GUESSED, Batch
from engine.generation import Generation
from engine.request import Request
from engine.sampling.draft_gate import StepCosts, best_length
from engine.sampling.lookup import LONG_MATCH, PromptLookup

# Of guesses that nobody has seen yet, so many of two come true.
FIRST_HITS, FIRST_TRIALS = 1.0, 2.0
# How much of what was seen still counts at the next guess.
MEMORY = 0.95


class HitRate:
    """The share of guesses that came true, the newest ones most."""

    def __init__(self) -> None:
        self._hits, self._trials = FIRST_HITS, FIRST_TRIALS

    @property
    def share(self) -> float:
        return self._hits / self._trials

    def count(self, is_hit: bool) -> None:
        self._hits = MEMORY * self._hits + is_hit
        self._trials = MEMORY * self._trials + 1


class Drafter:
    """What one request may say next. Owned by the speculator."""

    def __init__(self) -> None:
        self._lookup = PromptLookup()
        self._expected: Sequence[int] = ()
        self._rate_of_short, self._rate_of_long = HitRate(), HitRate()
        self._rate = self._rate_of_short

    @property
    def acceptance(self) -> float:
        """Of the newest guess: how likely each of its tokens is, if those before it were right."""
        return self._rate.share

    def guess(self, token_ids: Sequence[int]) -> Sequence[int]:
        """What may follow these, all that is known of the request."""
        new = token_ids[len(self._lookup) :]
        for token_id, expected in zip(new, self._expected, strict=False):
            self._rate.count(token_id == expected)
            if token_id != expected:
                break
        self._lookup.extend(new)
        self._expected, length = self._lookup.guess(MAX_GUESSED)
        self._rate = self._rate_of_long if length >= LONG_MATCH else self._rate_of_short
        return self._expected


class Speculator:
    """Owned by the engine thread."""

    def __init__(self, costs: StepCosts) -> None:
        self.costs = costs
        self._drafters: dict[int, Drafter] = {}

    def guess(self, writing: Sequence[Generation]) -> None:
        """Give each request that writes a draft for the next step, or none."""
        if not self.costs.is_known:
            return
        num_looks = sum(generation.request.num_tokens for generation in writing)
        num_left = MAX_GUESSED
        for generation in writing:
            request = generation.request
            request.draft = ()
            if request.options.is_reproducible or request.options.is_in_background:
                continue
            drafter = self._drafters.setdefault(request.request_id, Drafter())
            guessed = drafter.guess(request.token_ids)
            most = min(len(guessed), num_left)
            length = best_length(self.costs, drafter.acceptance, most, len(writing), num_looks)
            request.draft = tuple(generation.plausible(guessed[:length]))
            num_left -= len(request.draft)

    def learn(self, batch: Batch, seconds: float) -> None:
        """How long a step took in which nothing was read."""
        num_looks = sum(item.start * item.num_scheduled_tokens for item in batch.scheduled)
        self.costs.learn(batch.num_tokens, num_looks, seconds)

    def forget(self, request: Request) -> None:
        self._drafters.pop(request.request_id, None)
