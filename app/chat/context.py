"""Which turns of a conversation are sent when it has outgrown the context: planning, no more.

    system | turn 1 | turn 2 | pinned | turn 3 | ... | turn 9 | newest
           |<- left out -->|          |<- left out ->|<---- sent ---->|

What is left out stays left out, so that the KV of the new beginning serves for many turns: a cut
is made when the prompt grows beyond `FULL` of the room for it, and takes it down to `ROOMY`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from engine.errors import PromptTooLong

FULL = 0.9
ROOMY = 0.6
ANSWER_SHARE = 0.25
"""An answer may be allowed any length; no more than this share of the context is kept free."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is sent or left out as a whole: a message of the user with all that follows it, up to
    the next one. `first_id` is that message. A pinned piece is always sent."""

    first_id: str
    num_tokens: int
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent: the pinned pieces, and all from the one that begins with `first_id`.

    `first_id` is empty when nothing is left out. `num_tokens` is the size of the prompt.
    """

    first_id: str
    num_tokens: int
    num_left_out: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """A conversation in pieces, oldest first, the newest message last; and what is sent besides.

    `num_fixed` tokens go to the system prompt and to whatever the template adds.
    """

    pieces: Sequence[Piece]
    num_fixed: int = 0

    def sent_from(self, first_id: str) -> Plan:
        """The plan that leaves out what stands before `first_id`; nothing if it is not there."""
        return self._plan(self._place_of(first_id))

    def within(self, limit: int, first_id: str = "") -> Plan:
        """The plan for a prompt of at most `limit` tokens, if earlier ones began at `first_id`.

        The newest piece is always sent, even if it alone is larger than that.
        """
        plan = self._plan(self._place_of(first_id))
        if plan.num_tokens <= FULL * limit:
            return plan
        for place in self._starts:
            if place > self._place_of(first_id):
                plan = self._plan(place)
                if plan.num_tokens <= ROOMY * limit:
                    break
        return plan

    def left_out(self, plan: Plan, before: str = "") -> tuple[Piece, ...]:
        """The pieces that `plan` leaves out and the one from `before` on did not."""
        begin, end = self._place_of(before), self._place_of(plan.first_id)
        return tuple(piece for piece in self.pieces[begin:end] if not piece.is_pinned)

    @property
    def _starts(self) -> list[int]:
        """Where a prompt can begin: the last of these is the newest piece."""
        return [place for place, piece in enumerate(self.pieces) if not piece.is_pinned]

    def _place_of(self, first_id: str) -> int:
        places = (place for place in self._starts if self.pieces[place].first_id == first_id)
        return next(places, 0)

    def _plan(self, start: int) -> Plan:
        left_out = [piece for piece in self.pieces[:start] if not piece.is_pinned]
        everything = sum(piece.num_tokens for piece in self.pieces)
        return Plan(
            self.pieces[start].first_id if left_out else "",
            self.num_fixed + everything - sum(piece.num_tokens for piece in left_out),
            len(left_out),
        )


def prompt_limit(max_request_tokens: int, max_answer_tokens: int) -> int:
    """The most tokens of a prompt that leave room for its answer."""
    return max_request_tokens - min(max_answer_tokens, int(max_request_tokens * ANSWER_SHARE))


def context_for(num_tokens: int, max_answer_tokens: int) -> int:
    """The smallest context whose `prompt_limit` has room for so many tokens."""
    beside_share = ceil(num_tokens / (1 - ANSWER_SHARE))
    return min(beside_share, num_tokens + max_answer_tokens)


def larger_context(now: int, trained: int, needed: float) -> int | None:
    """The size of a context that has what is `needed`: twice what it is `now`, or that twice, and
    so on, at most what the model was trained for. None: not even that."""
    if needed > trained:
        return None
    size = 2 * now
    while size < needed:
        size *= 2
    return min(size, trained)


def scaled(sizes: Sequence[int], total: int) -> list[int]:
    """Whole numbers near `sizes` that add up to `total`: what a template puts around a message is
    not known message by message."""
    whole = sum(sizes)
    if not whole:
        return [0] * len(sizes)
    ends, done = [0], 0
    for size in sizes:
        done += size
        ends.append(round(done * total / whole))
    return [end - begin for begin, end in pairwise(ends)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the user chooses between. Sizes in tokens.

    The prompt has `num_tokens` and may have `limit`. Leaving out the `num_left_out` oldest turns,
    `num_tokens_left_out` together, makes it fit; a summary needs room itself, and so stands for
    the `num_summed_up` oldest. `larger` is the size of a context in which everything fits, or
    None: the model was not made for that much.
    """

    num_tokens: int
    limit: int
    max_request_tokens: int
    num_left_out: int
    num_tokens_left_out: int
    num_summed_up: int
    larger: int | None


class DoesNotFit(PromptTooLong):
    """The conversation has outgrown the context, and the user has not said what to do then."""

    def __init__(self, outlook: Outlook) -> None:
        super().__init__(outlook.num_tokens, outlook.limit)
        self.outlook = outlook
        number = outlook.num_left_out
        turns = f"{number} oldest turns, let them" if number > 1 else "oldest turn, let it"
        self.args = (
            f"This conversation needs {outlook.num_tokens:,} tokens, and {outlook.limit:,} fit"
            f" beside an answer: leave out its {turns} be summarised, choose a larger context in"
            " the settings, or start a new conversation.",
        )
