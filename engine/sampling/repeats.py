"""What would repeat a longer run of tokens: no-repeat n-gram, and DRY (do not repeat yourself)."""

import math

import numpy as np
from numpy.typing import NDArray

from engine.sampling.candidates import Indices, Weights
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams
from engine.text_match import TextMatch

JSON_PUNCTUATION = tuple(bytes([byte]) for byte in b'{}[],:"')
"""What an answer in JSON has to repeat, whatever it says."""

# The power stays below the largest float32, as llama.cpp's does; what is taken off stays far below,
# so that a token that was possible is possible.
LOG_OF_LARGEST = 88.7228391
MOST = 1e30
# So much longer than allowed a run counts at most: the tokens of a prompt are compared one by one.
LONGEST = 2048


def completing_ngrams(tokens: NDArray[np.int32], size: int) -> Indices:
    """The ids that would make the last `size - 1` tokens a run that occurs in `tokens` already."""
    if len(tokens) < size:
        return np.empty(0, np.intp)
    # Where the next token of each earlier run stands; the last run has none yet.
    ends = np.arange(size - 1, len(tokens))
    for back in range(1, size):
        ends = ends[tokens[ends - back] == tokens[len(tokens) - back]]
    ids = np.unique(tokens[ends]).astype(np.intp)
    # Places of pictures have ids below 0, which nobody draws.
    return ids[ids >= 0]


class Dry:
    """How long the runs are that the newest tokens repeat. Owned by the state of one request.

    `_lengths[e]` says for an earlier token e: so many tokens up to e, and with it, are the same as
    the newest ones. One token more makes each of them one longer, or nothing.
    """

    def __init__(self, params: SamplingParams, vocabulary: SamplingVocabulary) -> None:
        self._params = params
        self._vocabulary = vocabulary
        self._breakers = [TextMatch(text.encode()) for text in params.dry_breakers]
        self._lengths = np.empty(0, np.int32)
        self._num_followed = 0

    def copy(self) -> "Dry":
        other = Dry(self._params, self._vocabulary)
        other._breakers = [match.copy() for match in self._breakers]
        # They are replaced at every step, and never written into.
        other._lengths, other._num_followed = self._lengths, self._num_followed
        return other

    def follow(self, tokens: NDArray[np.int32], *, is_in_form: bool) -> None:
        """Take in what is new in `tokens`. In a form JSON's punctuation breaks, too."""
        if self._num_followed == 0:
            # Older tokens could make runs longer, and no penalty larger.
            self._num_followed = max(0, len(tokens) - self._longest_run() - 1)
            self._lengths = np.zeros(max(0, self._num_followed - 1), np.int32)
        for index in range(self._num_followed, len(tokens)):
            self._take(tokens, index, is_in_form)
        self._num_followed = len(tokens)

    def penalties(self, tokens: NDArray[np.int32], *, is_in_form: bool) -> tuple[Indices, Weights]:
        """The ids that would make a repeated run longer, each once, and what to take off."""
        params = self._params
        start = max(0, len(tokens) - params.dry_window)
        # A run ends where the window begins.
        lengths = np.minimum(self._lengths[start:], np.arange(1, len(self._lengths) - start + 1))
        ends = np.flatnonzero(lengths >= params.dry_allowed_length)
        # What followed a run may have been a picture, whose ids below 0 nobody draws.
        ends = ends[tokens[start + ends + 1] >= 0]
        ids, groups = np.unique(tokens[start + ends + 1], return_inverse=True)
        longest = np.zeros(len(ids), np.int64)
        np.maximum.at(longest, groups, lengths[ends])
        is_breaker = [self._has_breaker(int(token_id), is_in_form) for token_id in ids]
        counted = ~np.array(is_breaker, dtype=np.bool_)
        exponents = np.minimum(longest - params.dry_allowed_length, self._largest_exponent())
        amounts = params.dry_multiplier * np.power(params.dry_base, exponents, dtype=np.float64)
        return ids[counted].astype(np.intp), np.minimum(amounts[counted], MOST)

    def _take(self, tokens: NDArray[np.int32], index: int, is_in_form: bool) -> None:
        """Token `index` is the newest now: compare it with every token before it."""
        start = max(0, index + 1 - self._params.dry_window)
        lengths = np.zeros(index, np.int32)
        if not self._completes_breaker(int(tokens[index]), is_in_form):
            if index > start:
                lengths[start] = 1
            lengths[start + 1 :] = self._lengths[start : index - 1] + 1
            lengths[start:] *= tokens[start:index] == tokens[index]
        self._lengths = lengths

    def _completes_breaker(self, token_id: int, is_in_form: bool) -> bool:
        text = self._vocabulary.spell(token_id)
        # Each is fed with everything, whatever another one has found.
        found = [match.advance(byte) for byte in text for match in self._breakers]
        return any(found) or (is_in_form and _has_punctuation(text))

    def _has_breaker(self, token_id: int, is_in_form: bool) -> bool:
        text = self._vocabulary.spell(token_id)
        has_own = any(match.text in text for match in self._breakers)
        return has_own or (is_in_form and _has_punctuation(text))

    def _largest_exponent(self) -> int:
        base = self._params.dry_base
        # With a base of 1 every penalty is the same.
        return min(LONGEST, int(LOG_OF_LARGEST / math.log(base))) if base > 1.000001 else 0

    def _longest_run(self) -> int:
        """Longer ones make no difference."""
        return self._params.dry_allowed_length + self._largest_exponent()


def _has_punctuation(text: bytes) -> bool:
    return any(sign in text for sign in JSON_PUNCTUATION)
