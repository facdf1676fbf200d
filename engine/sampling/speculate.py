"""Guess what comes next, where that is likely to come true and pays.

    what was said before (lookup.py)            costs nothing: always asked first
    a second, smaller model (draft_model.py)    asked where nothing was said before, if there is one

The guesses are computed together with the newest token, and each that was right spares a step.
Those from what was said are compared with what really comes also while nothing is guessed in
earnest, so it costs nothing to know when guessing begins to pay, and when it stops. A model that
does not pay is asked now and then, so seldom that it costs next to nothing.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from engine.batch import MAX_GUESSED, Batch
from engine.generation import Generation
from engine.request import Request
from engine.sampling.draft_gate import StepCosts, best_length
from engine.sampling.draft_model import DraftModel
from engine.sampling.lookup import LONGER_MATCHES, PromptLookup

# Of guesses that nobody has seen yet, so many of two come true.
FIRST_HITS, FIRST_TRIALS = 1.0, 2.0
# How much of what was seen still counts at the next guess: of a request, and of all of them.
MEMORY, MEMORY_OF_ALL = 0.95, 0.99
# A new request begins with what others have shown, which counts as much as so many of its own.
BORROWED_TRIALS = 8.0
# So many tokens of prompts are taken in at each step, in a millisecond; others wait meanwhile.
INDEX_TOKENS = 1024
# So many of a prompt does the draft model read between two tokens of the answer.
DRAFT_PIECE = 64
# Of the time of an answer, what asking a model that does not pay may take, and how far it is asked.
TRIAL_SHARE = 0.01
TRIAL_TOKENS = 3


class HitRate:
    """The share of guesses that came true, the newest ones most; of one request, which adds to that
    `of_all`, or of all."""

    def __init__(self, of_all: "HitRate | None" = None) -> None:
        self._of_all = of_all
        self._hits, self._trials = FIRST_HITS, FIRST_TRIALS
        if of_all is not None:
            self._trials = min(BORROWED_TRIALS, of_all._trials)
            self._hits = of_all._hits / of_all._trials * self._trials
        self._memory = MEMORY_OF_ALL if of_all is None else MEMORY

    @property
    def share(self) -> float:
        """What may be counted on: less than was seen, by the uncertainty of so few trials."""
        share = self._hits / self._trials
        return share - sqrt(share * (1 - share) / self._trials)

    def count(self, is_hit: bool) -> None:
        self._hits = self._memory * self._hits + is_hit
        self._trials = self._memory * self._trials + 1
        if self._of_all is not None:
            self._of_all.count(is_hit)


class Guess(NamedTuple):
    """What may come next, and how likely each of its tokens is if those before it are right."""

    token_ids: Sequence[int]
    rate: HitRate


class Drafter:
    """What one request may say next. Owned by the speculator."""

    def __init__(self, rates: Sequence[HitRate]) -> None:
        """`rates` of all requests, of each class of matches."""
        self._lookup = PromptLookup()
        self._guess: Guess | None = None
        self._rates = [HitRate(of_all) for of_all in rates]
        self.seconds_since_trial = 0.0
        """What steps without guesses took since the draft model was last asked."""

    def follow(self, token_ids: Sequence[int], most: int) -> int:
        """Take in what is known of the request, at most so many tokens; says how many it was.
        What was guessed is compared with what came."""
        begin = len(self._lookup)
        new = token_ids[begin : begin + most]
        if self._guess is not None:
            for token_id, expected in zip(new, self._guess.token_ids, strict=False):
                self._guess.rate.count(token_id == expected)
                if token_id != expected:
                    break
            self._guess = None
        self._lookup.extend(new)
        return len(new)

    def knows(self, token_ids: Sequence[int]) -> bool:
        """Whether all of them have been taken in."""
        return len(self._lookup) == len(token_ids)

    def look_up(self) -> Guess | None:
        """What followed the newest tokens when they were said before, or None."""
        guessed, length = self._lookup.guess(MAX_GUESSED)
        if not guessed:
            return None
        return self.expect(Guess(guessed, self._rates[bisect_right(LONGER_MATCHES, length)]))

    def expect(self, guess: Guess) -> Guess:
        """Compare it with what comes."""
        self._guess = guess
        return guess


class Speculator:
    """Owned by the engine thread."""

    def __init__(self, costs: StepCosts, draft_model: DraftModel | None = None) -> None:
        self.costs = costs
        self._draft_model = draft_model
        self._rate_of_model = HitRate()
        self._rates = [HitRate() for _ in range(len(LONGER_MATCHES) + 1)]
        self._drafters: dict[int, Drafter] = {}

    def guess(self, running: Sequence[Generation]) -> None:
        """Give each request that writes a draft for the next step, or none."""
        if not self.costs.is_known:
            return
        num_to_index, num_left = INDEX_TOKENS, MAX_GUESSED
        writing = [each.request for each in running if not each.request.is_prefilling]
        num_looks = sum([request.num_tokens for request in writing])
        for generation in running:
            request = generation.request
            request.draft = ()
            if request.options.is_reproducible or request.options.is_in_background:
                continue
            drafter = self._drafters.get(request.request_id)
            if drafter is None:
                drafter = self._drafters[request.request_id] = Drafter(self._rates)
            num_to_index -= drafter.follow(request.token_ids, num_to_index)
            if request.is_prefilling or not drafter.knows(request.token_ids):
                continue
            guess = drafter.look_up()
            if guess is not None:
                most = min(len(guess.token_ids), num_left)
                length = best_length(self.costs, guess.rate.share, most, len(writing), num_looks)
            elif self._draft_model is not None and self._can_ask(self._draft_model, request):
                step = _Step(len(writing), num_looks, num_left)
                guess = self._ask_model(self._draft_model, request, drafter, step)
                length = 0 if guess is None else min(len(guess.token_ids), num_left)
            if guess is not None and length:
                request.draft = tuple(generation.plausible(guess.token_ids[:length]))
                num_left -= len(request.draft)

    def learn(self, batch: Batch, seconds: float) -> None:
        """How long a step took in which nothing was read."""
        num_looks = sum([item.start * item.num_scheduled_tokens for item in batch.scheduled])
        self.costs.learn(batch.num_tokens, num_looks, seconds)

    def forget(self, request: Request) -> None:
        self._drafters.pop(request.request_id, None)
        if self._draft_model is not None:
            self._draft_model.forget(request.request_id)

    def _can_ask(self, model: DraftModel, request: Request) -> bool:
        """The draft model sees no pictures, so it knows nothing of what follows one."""
        return model.is_ready and not request.spans

    def _ask_model(
        self, model: DraftModel, request: Request, drafter: Drafter, step: "_Step"
    ) -> Guess | None:
        """What the draft model says comes next. None: it is not asked, or not ready yet."""
        rate = self._rate_of_model
        length = best_length(
            self.costs,
            rate.share,
            step.num_left,
            step.num_writing,
            step.num_looks,
            seconds_each=model.seconds(1, request.num_tokens),
        )
        if length == 0:
            self._try_model(model, request, drafter, step)
            return None
        if not model.is_near(request):
            model.read(request, DRAFT_PIECE)
            return None
        drafter.seconds_since_trial = 0.0
        drafted = model.draft(request, length)
        return drafter.expect(Guess(drafted, rate)) if drafted else None

    def _try_model(
        self, model: DraftModel, request: Request, drafter: Drafter, step: "_Step"
    ) -> None:
        """It does not pay as things stand: compare a few tokens of it, once that is paid for by the
        time that has gone by."""
        drafter.seconds_since_trial += self.costs.seconds(step.num_writing, step.num_looks)
        if TRIAL_SHARE * drafter.seconds_since_trial < model.seconds_to_draft(
            request, TRIAL_TOKENS
        ):
            return
        if not model.is_near(request):
            model.read(request, DRAFT_PIECE)
            return
        drafter.seconds_since_trial = 0.0
        drafted = model.draft(request, TRIAL_TOKENS)
        if drafted:
            drafter.expect(Guess(drafted, self._rate_of_model))


class _Step(NamedTuple):
    """The next step without guesses, and how many tokens may still be guessed in it."""

    num_writing: int
    num_looks: int
    num_left: int
