"""The penalties of one request, with counts that follow its tokens instead of recounting them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.sampling_params import SamplingParams

# Above it there is only infinity, which would leave no doubt.
LARGEST = float(np.finfo(np.float32).max)


class TokenCounts:
    """How often each token occurs in a span of a growing list; both ends only move forward.

    Owned by the penalties of one request.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._end = start
        self._slots: dict[int, int] = {}
        self._ids = np.zeros(64, dtype=np.intp)
        self._counts = np.zeros(64, dtype=np.intp)

    @property
    def ids(self) -> NDArray[np.intp]:
        """The distinct tokens of the span, in no order; a view, good until the next `move`."""
        return self._ids[: len(self._slots)]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Beside `ids`: how often each occurs; never 0."""
        return self._counts[: len(self._slots)]

    def copy(self) -> "TokenCounts":
        other = TokenCounts(self._start)
        other._end, other._slots = self._end, dict(self._slots)
        other._ids, other._counts = self._ids.copy(), self._counts.copy()
        return other

    def move(self, token_ids: Sequence[int], start: int) -> None:
        """Count from `start` to the end of `token_ids`."""
        for index in range(self._end, len(token_ids)):
            self._add(token_ids[index])
        for index in range(self._start, start):
            self._remove(token_ids[index])
        self._start, self._end = start, len(token_ids)

    def _add(self, token_id: int) -> None:
        if token_id < 0:
            # A place of a picture: nothing that was said.
            return
        slot = self._slots.setdefault(token_id, len(self._slots))
        if slot == len(self._ids):
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._ids[slot] = token_id
        self._counts[slot] += 1

    def _remove(self, token_id: int) -> None:
        if token_id < 0:
            return
        slot = self._slots[token_id]
        self._counts[slot] -= 1
        if self._counts[slot]:
            return
        del self._slots[token_id]
        # The last one takes the free place, so that there is no gap.
        last = len(self._slots)
        if slot != last:
            moved = int(self._ids[last])
            self._ids[slot], self._counts[slot] = moved, self._counts[last]
            self._counts[last] = 0
            self._slots[moved] = slot


class Penalties:
    """Lowers the logits of tokens that were already said. Owned by the state of one request.

    Repetition sees prompt and answer, over the last `penalty_window` tokens; frequency and
    presence see the whole answer and nothing else.
    """

    def __init__(self, params: SamplingParams, num_prompt_tokens: int, num_tokens: int) -> None:
        self._params = params
        self._num_prompt_tokens = num_prompt_tokens
        self._recent = TokenCounts(max(0, num_tokens - params.penalty_window))
        self._answered = TokenCounts(num_prompt_tokens)

    def copy(self) -> "Penalties":
        other = Penalties(self._params, self._num_prompt_tokens, 0)
        other._recent, other._answered = self._recent.copy(), self._answered.copy()
        return other

    def apply(self, row: NDArray[np.float32], token_ids: Sequence[int]) -> None:
        """Put the penalties of `token_ids` (prompt and answer) into a row of logits, in place."""
        params = self._params
        if params.repetition_penalty != 1.0:
            self._recent.move(token_ids, max(0, len(token_ids) - params.penalty_window))
            ids = self._recent.ids
            values = row[ids].astype(np.float64)
            factors = np.where(values > 0, 1 / params.repetition_penalty, params.repetition_penalty)
            with np.errstate(over="ignore"):
                row[ids] = np.minimum(values * factors, LARGEST)
        if has_answer_penalty(params):
            self._answered.move(token_ids, self._num_prompt_tokens)
            ids = self._answered.ids
            amounts = params.frequency_penalty * self._answered.counts + params.presence_penalty
            row[ids] = row[ids].astype(np.float64) - amounts


def has_penalty(params: SamplingParams) -> bool:
    return params.repetition_penalty != 1.0 or has_answer_penalty(params)


def has_answer_penalty(params: SamplingParams) -> bool:
    return params.frequency_penalty != 0.0 or params.presence_penalty != 0.0
