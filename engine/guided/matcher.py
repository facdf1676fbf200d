"""Where one answer stands in its form: which tokens may come next, and the shortest way to its end.

The shortest way is looked for by going ahead on copies of the state: what must come is taken at
once, and where there is a choice, what closes is tried first, then one character after the other.
What closes is known from examples of the form, and from the texts that stand in a grammar.
So it is no promise of the very shortest, but a way that was walked to its end.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from time import perf_counter

import llguidance
import numpy as np
from numpy.typing import NDArray

from engine.errors import GrammarFailed
from engine.guided.json_place import JsonPlace
from engine.guided.vocabulary import GuidedVocabulary

TOO_MUCH = "too much may come next, in too many ways for this model"
# In bytes: more than a token or two, which are soon over.
A_WHILE = 16
MOST_ENDINGS = 3
MOST_LITERALS = 12
MOST_OTHERS = 20
# Others wait meanwhile.
CLOSING_SECONDS = 0.15
# Of each search, in tokens, what something else than the first choice costs, and what it costs to
# come where the same may come next as somewhere before; and how many states it may look at. The
# higher the first cost, the sooner it gets far; the lower, the shorter is what it finds. The last
# one only goes ahead, for forms whose shortest answer is long.
SEARCHES = (8, 4, 300), (1000, 4, 1500), (1_000_000, 0, 3000)


class Matcher:
    """Owned by the engine thread, one for each request."""

    def __init__(
        self,
        state: llguidance.LLMatcher,
        vocabulary: GuidedVocabulary,
        json_place: JsonPlace | None = None,
        endings: Sequence[Sequence[int]] = (),
        literals: Sequence[Sequence[int]] = (),
    ) -> None:
        """`endings`: spelled out, what an answer may end with, or in JSON a string. `literals`:
        what may end a part of it."""
        self._state = state
        self._vocabulary = vocabulary
        self._json_place = json_place
        self._endings = endings
        self._literals = literals
        self._mask = np.empty((vocabulary.num_tokens + 31) // 32, np.int32)

    @property
    def is_accepting(self) -> bool:
        """The answer may end here."""
        return bool(self._state.is_accepting())

    @property
    def is_terminated(self) -> bool:
        """The answer must end here."""
        return bool(self._state.is_stopped())

    def fill_bitmask(self) -> NDArray[np.int32]:
        """Packed bits of the tokens that may come next, valid until the next call.

        Raises GrammarFailed when llguidance gave up: its mask would then end the answer.
        """
        self._state.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        self._check()
        return self._mask

    def restrict(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of a row of logits in which only what may come next is possible."""
        allowed = self._vocabulary.allowed(self.fill_bitmask())
        place = self._json_place
        if place is not None and not place.in_string and (place.num_digits or place.in_exponent):
            fewer = allowed & (self._vocabulary.leading_digits <= place.num_digits_left)
            if fewer.any():
                allowed = fewer
        return np.where(allowed, row, np.float32(-np.inf))

    def accept(self, token_id: int) -> None:
        self._state.consume_token(token_id)
        self._check()
        if self._json_place is not None:
            self._json_place.feed(self._vocabulary.token_bytes[token_id])

    def copy(self) -> "Matcher":
        place = None if self._json_place is None else replace(self._json_place)
        state = self._state.deep_copy()
        return Matcher(state, self._vocabulary, place, self._endings, self._literals)

    def closing(self, num_tokens: int, seconds: float | None = None) -> list[int] | None:
        """Tokens of a way to the end, at most so many. None: none was found in this time."""
        until = perf_counter() + (CLOSING_SECONDS if seconds is None else seconds)
        for search in SEARCHES:
            way = _way_to_the_end(self.copy(), num_tokens, search, until)
            if way is not None:
                return way
        return None

    def forced(self) -> list[int]:
        """Tokens of which each is the only one that may come."""
        tokens: list[int] = self._state.compute_ff_tokens()
        self._check()
        return tokens

    def num_valid(self, token_ids: Sequence[int]) -> int:
        """How many of these may come next, one after the other."""
        return int(self._state.validate_tokens(list(token_ids)))

    @property
    def is_forced(self) -> bool:
        """The form leaves no choice for a while, or until its end."""
        if self.is_accepting:
            return False
        coming: bytes = self._state.compute_ff_bytes()
        if len(coming) >= A_WHILE:
            return True
        spelled = self._vocabulary.spell_out(coming.decode("utf-8", "replace"))
        return spelled is not None and self._is_complete_after(spelled)

    def choices(self) -> Sequence[Sequence[int]]:
        """What may come next, first what soon leads to the end: a character, or several."""
        characters = self._characters()
        place = self._json_place
        if place is None:
            return [*self._fitting_endings(), *self._fitting_literals(), *characters]
        if not place.in_string:
            return characters
        closing = [each for each in characters if self._spell(each) == b'"']
        return [*closing, *self._fitting_endings(), *characters[len(closing) :]]

    def _characters(self) -> list[list[int]]:
        """Tokens of one byte, in the order in which they are tried."""
        place, mask = self._json_place, self.fill_bitmask()
        in_string = place is not None and place.in_string
        candidates = self._vocabulary.to_fill if in_string else self._vocabulary.to_close
        bits = (mask[candidates >> 5] >> (candidates & 31)) & 1
        found = [[int(each)] for each in candidates[bits.astype(np.bool_)]]
        if found:
            return found
        # In no script of ours: whatever may come, the shortest first.
        spelled = self._vocabulary.token_bytes
        allowed = self._vocabulary.allowed(mask)
        allowed[self._vocabulary.end_ids] = False
        few = sorted(allowed.nonzero()[0][:MOST_OTHERS], key=lambda each: len(spelled[each]))
        return [[int(each)] for each in few]

    def _spell(self, token_ids: Sequence[int]) -> bytes:
        return b"".join(self._vocabulary.token_bytes[each] for each in token_ids)

    def _fitting_endings(self) -> Sequence[Sequence[int]]:
        """Ends that may come next: of whole answers those that complete this one, and the shortest
        first."""
        parts = (list(each[start:]) for each in self._endings for start in range(len(each)))
        fitting = [part for part in parts if self._fits(part)]
        if self._json_place is None:
            fitting = [part for part in fitting if self._is_complete_after(part)]
        return sorted(fitting, key=len)[:MOST_ENDINGS]

    def _fitting_literals(self) -> Sequence[Sequence[int]]:
        fitting = (each for each in self._literals if self._fits(each))
        return list(itertools.islice(fitting, MOST_LITERALS))

    def _fits(self, tokens: Sequence[int]) -> bool:
        return bool(self._state.validate_tokens(list(tokens)) == len(tokens))

    def _is_complete_after(self, tokens: list[int]) -> bool:
        state = self._state.deep_copy()
        return bool(state.consume_tokens(tokens) and state.is_accepting())

    def _check(self) -> None:
        if self._state.is_error():
            told = self._state.get_error()
            reason = TOO_MUCH if "Too many items" in told else told.split("\n")[0].strip()
            raise GrammarFailed(
                f"The answer could not be kept to its form any further ({reason}): try a simpler"
                " form."
            )


@dataclass(frozen=True, slots=True)
class _Place:
    """A way that was gone, and one token more that may be tried from there."""

    state: Matcher
    tokens: tuple[int, ...]
    num_turns: int
    """How often something else than the first choice was taken, and how far from it."""
    num_repetitions: int
    """How often it came where nothing new was possible."""
    next_tokens: Sequence[int]


def _way_to_the_end(
    state: Matcher, most: int, search: tuple[int, int, int], until: float
) -> list[int] | None:
    """Best first: what is short, takes first choices (limited discrepancy search, Harvey and
    Ginsberg 1995), and comes where something else is possible than before (novelty, Lipovetzky and
    Geffner 2012)."""
    cost_of_a_turn, cost_of_a_repetition, most_looks = search
    order = itertools.count()
    places = [(0, next(order), _Place(state, (), 0, 0, ()))]
    seen: set[bytes] = set()
    for _ in range(most_looks):
        if not places or perf_counter() > until:
            return None
        _, _, place = heappop(places)
        state, tokens = place.state, place.tokens
        try:
            if place.next_tokens:
                state = state.copy()
                for token_id in place.next_tokens:
                    state.accept(token_id)
                tokens = (*tokens, *place.next_tokens)
            while not state.is_accepting and (forced := state.forced()):
                for token_id in forced:
                    state.accept(token_id)
                tokens = (*tokens, *forced)
            if state.is_accepting and len(tokens) <= most:
                return list(tokens)
            choices = state.choices() if len(tokens) < most else ()
        except GrammarFailed:
            continue
        num_repetitions = place.num_repetitions
        if choices:
            mask = state.fill_bitmask().tobytes()
            num_repetitions += mask in seen
            seen.add(mask)
        for rank, chosen in enumerate(choices):
            num_turns = place.num_turns + rank
            cost = len(tokens) + cost_of_a_turn * num_turns
            cost += cost_of_a_repetition * num_repetitions
            further = _Place(state, tokens, num_turns, num_repetitions, chosen)
            heappush(places, (cost, next(order), further))
    return None
