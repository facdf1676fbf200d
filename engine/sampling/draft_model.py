"""A second, smaller model of the same vocabulary, which guesses what the first one will say.

    request    known known known known | next
    its copy   known known known known | a b c      guessed one after the other, the likeliest each
    request    known known known known   a b X      what really came
    its copy   known known known known   a b [X] |  cut back to what both have, X is read

It needs no more than a backend gives, so it can be any. What it says changes no answer: a guess is
compared with what is drawn (speculate.py).
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import Backend, StepFailure
from engine.batch import Batch, ScheduledRequest
from engine.errors import ModelUnsupported
from engine.kv.seats import common_prefix
from engine.request import Request
from engine.sampling.draft_gate import StepCosts
from engine.sampling_params import SamplingParams
from engine.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

# So many tokens that it has not read yet do not keep it from guessing at once.
NEAR_TOKENS = 24
# The first one also warms up.
MEASURED_SIZES = 1, NEAR_TOKENS, 1, 1
_PARAMS = SamplingParams()


def check_vocabularies(model: Backend, draft: Backend) -> None:
    """Raises ModelUnsupported unless each id means the same to both models, and the draft model's
    memory can be cut back to an earlier token."""
    name, other = draft.info.name, model.info.name
    if not draft.kv_memory.can_cut:
        raise ModelUnsupported(
            f"{name} cannot draft: its memory cannot be put back to before a wrong guess; choose"
            " another draft model, or none."
        )
    if not model.kv_memory.can_cut:
        raise ModelUnsupported(
            f"{other} cannot use a draft model: its memory cannot be put back to before a wrong"
            " guess; leave the draft model out."
        )
    difference = _difference(model.tokenizer, draft.tokenizer)
    if difference:
        raise ModelUnsupported(
            f"{name} cannot draft for {other}: their vocabularies differ ({difference}); choose a"
            " smaller model of the same family, or none."
        )


def _difference(one: Tokenizer, other: Tokenizer) -> str:
    """Of two vocabularies, the first there is, in words; empty when there is none."""
    if one.num_tokens != other.num_tokens:
        return f"{one.num_tokens:,} and {other.num_tokens:,} tokens"
    if one.bos_id != other.bos_id:
        return "another token begins a text"
    ids = {token.text: token.token_id for token in one.control_tokens.values()}
    if ids != {token.text: token.token_id for token in other.control_tokens.values()}:
        return "other control tokens"
    for token_id in range(one.num_tokens):
        if one.token_bytes(token_id) != other.token_bytes(token_id):
            return f"token {token_id:,} is another one"
        if one.is_end(token_id) != other.is_end(token_id):
            return f"only in one of them does token {token_id:,} end an answer"
    return ""


@dataclass(slots=True)
class _Copy:
    """What the draft model has of a request: its first `num_known` tokens are the request's, the
    others were guessed."""

    request: Request
    num_known: int = 0


class DraftModel:
    """Owned by the engine thread. It follows as many requests as its memory has sequences and
    cells for; the one that was left alone longest makes way."""

    def __init__(self, backend: Backend, costs: StepCosts | None = None) -> None:
        """`costs` of its steps, where they are known."""
        self._backend = backend
        self._memory = backend.kv_memory
        self._costs = costs or StepCosts()
        self._copies: OrderedDict[int, _Copy] = OrderedDict()
        self._free = list(range(self._memory.num_sequences))
        self._is_broken = False

    @property
    def is_ready(self) -> bool:
        """It can be asked, and what that costs is known."""
        return self._costs.is_known and not self._is_broken

    def measure(self) -> None:
        """Find out what its steps cost, before the first request."""
        for num_tokens in MEASURED_SIZES:
            request = Request([0] * num_tokens, _PARAMS, sequence_id=self._free[0])
            if self._compute(request, num_tokens) is None:
                return
            self._memory.free(self._free[0])

    def seconds(self, num_tokens: int, num_held: int) -> float:
        """Of a step of so many tokens that each look back at what is held."""
        return self._costs.seconds(num_tokens, num_tokens * num_held)

    def seconds_to_draft(self, request: Request, num_tokens: int) -> float:
        """With what has to be read before."""
        num_missing = self._num_missing(request)
        reading = self.seconds(num_missing, request.num_tokens)
        return reading + (num_tokens - 1) * self.seconds(1, request.num_tokens)

    def is_near(self, request: Request) -> bool:
        """Whether it has read nearly all of a request."""
        return self._num_missing(request) <= NEAR_TOKENS

    def read(self, request: Request, most: int) -> None:
        """Read on, at most so many tokens and not the last one."""
        copy = self._follow(request)
        if copy is None:
            return
        num_left = copy.request.num_tokens - 1 - copy.request.num_computed_tokens
        if num_left > 0:
            self._advance(request.request_id, copy, min(most, num_left))

    def draft(self, request: Request, most: int) -> Sequence[int]:
        """The likeliest tokens to come, at most so many and none that ends the answer."""
        copy = self._follow(request)
        drafted: list[int] = []
        while copy is not None and len(drafted) < most:
            num_missing = copy.request.num_tokens - copy.request.num_computed_tokens
            row = self._advance(request.request_id, copy, num_missing)
            if row is None:
                break
            token_id = int(row.argmax())
            if self._backend.tokenizer.is_end(token_id):
                break
            drafted.append(token_id)
            copy.request.token_ids.append(token_id)
        return drafted

    def forget(self, request_id: int) -> None:
        """Drop what is held of a request; nothing happens when nothing is."""
        copy = self._copies.pop(request_id, None)
        if copy is not None:
            self._memory.free(copy.request.seat_id)
            self._free.append(copy.request.seat_id)

    def close(self) -> None:
        self._backend.close()

    def check(self) -> None:
        """Its books and its memory agree; for tests."""
        held = {copy.request.seat_id: copy.request for copy in self._copies.values()}
        assert sorted([*held, *self._free]) == list(range(self._memory.num_sequences))
        for sequence_id in range(self._memory.num_sequences):
            expected = held[sequence_id].num_computed_tokens if sequence_id in held else 0
            assert self._memory.length(sequence_id) == expected

    def _num_missing(self, request: Request) -> int:
        copy = self._copies.get(request.request_id)
        held = 0 if copy is None else min(copy.request.num_computed_tokens, copy.num_known)
        return max(1, request.num_tokens - held)

    def _follow(self, request: Request) -> _Copy | None:
        """The copy, cut back to what came and with what is new. None: it cannot be followed."""
        if request.num_tokens > self._backend.max_request_tokens:
            return None
        copy = self._copies.get(request.request_id) or self._begin(request)
        self._copies.move_to_end(request.request_id)
        mine, begin = copy.request, copy.num_known
        guessed, came = mine.token_ids[begin:], request.token_ids[begin:]
        agreed = begin + common_prefix(guessed, came, min(len(guessed), len(came)))
        del mine.token_ids[agreed:]
        mine.token_ids += request.token_ids[agreed:]
        copy.num_known = request.num_tokens
        # The last token is computed again where only what follows it is missing.
        num_held = min(mine.num_computed_tokens, agreed, mine.num_tokens - 1)
        if num_held < mine.num_computed_tokens:
            self._memory.truncate(mine.seat_id, num_held)
            mine.num_computed_tokens = num_held
        return copy

    def _begin(self, request: Request) -> _Copy:
        if not self._free:
            self.forget(next(iter(self._copies)))
        copy = _Copy(Request([], _PARAMS, sequence_id=self._free.pop()))
        self._copies[request.request_id] = copy
        return copy

    def _advance(self, request_id: int, copy: _Copy, num_tokens: int) -> NDArray[np.float32] | None:
        """Compute its next tokens; the logits after the last of them. None: it was given up."""
        if not self._make_room(request_id, num_tokens):
            return None
        row = self._compute(copy.request, num_tokens)
        if row is None:
            self.forget(request_id)
        return row

    def _make_room(self, request_id: int, num_tokens: int) -> bool:
        used = sum(copy.request.num_computed_tokens for copy in self._copies.values())
        while used + num_tokens > self._memory.num_cells:
            oldest = next(iter(self._copies))
            if oldest == request_id:
                return False
            used -= self._copies[oldest].request.num_computed_tokens
            self.forget(oldest)
        return True

    def _compute(self, request: Request, num_tokens: int) -> NDArray[np.float32] | None:
        """The logits after the last of them, empty where nobody asks; None when it failed."""
        item = ScheduledRequest.of(request, num_tokens)
        runner = self._backend.model_runner
        logits = runner.execute(Batch((item,)))
        if isinstance(logits, StepFailure):
            self._give_up(logits)
            return None
        self._costs.learn(num_tokens, item.start * num_tokens, runner.step_cost)
        request.num_computed_tokens += num_tokens
        return logits[0] if item.is_sampled else logits

    def _give_up(self, failure: StepFailure) -> None:
        """Answers go on without it, for good when it may be damaged."""
        logger.warning("the draft model could not compute a step (%s)", failure.name)
        for request_id in list(self._copies):
            self.forget(request_id)
        if failure is StepFailure.BROKEN:
            self._is_broken = True
            self._memory.clear()
