"""What is pushed or may not come at all: biases, banned tokens, and texts that never appear."""

import math
from collections.abc import Sequence

import numpy as np

from engine.sampling.candidates import Indices, Logits
from engine.sampling.checks import BAN
from engine.sampling.vocabulary import SamplingVocabulary
from engine.text_match import TextMatch


class LogitBias:
    """What is added to the logits of some tokens, and which are banned. Immutable."""

    def __init__(self, biases: Sequence[tuple[int, float]]) -> None:
        self._ids = np.array([token_id for token_id, _ in biases], dtype=np.intp)
        amounts = [-math.inf if bias <= BAN else bias for _, bias in biases]
        self._amounts = np.array(amounts, dtype=np.float64)
        self.banned = np.sort(self._ids[np.isneginf(self._amounts)])

    def apply(self, row: Logits) -> None:
        """In place."""
        row[self._ids] = row[self._ids].astype(np.float64) + self._amounts


class BannedPhrases:
    """Keeps an answer from completing any of some texts. Owned by the state of one request.

    A phrase can be completed by a token that has all of it, or by one that begins with the rest of
    what the answer ends with. So it is known before a token is chosen which ones would do it,
    wherever the tokens cut the phrase; nothing is taken back, and nothing has to be held back.
    """

    def __init__(
        self, phrases: Sequence[str], vocabulary: SamplingVocabulary, num_prompt_tokens: int
    ) -> None:
        self._vocabulary = vocabulary
        self._matches = [TextMatch(phrase.encode()) for phrase in phrases]
        whole = [vocabulary.containing(match.text) for match in self._matches]
        self._containing = np.unique(np.concatenate(whole)) if whole else np.empty(0, np.intp)
        self._num_followed = num_prompt_tokens

    def copy(self) -> "BannedPhrases":
        other = BannedPhrases((), self._vocabulary, self._num_followed)
        other._matches = [match.copy() for match in self._matches]
        other._containing = self._containing
        return other

    def follow(self, token_ids: Sequence[int]) -> None:
        """Take in what was generated since the last time."""
        for index in range(self._num_followed, len(token_ids)):
            for byte in self._vocabulary.spell(token_ids[index]):
                for match in self._matches:
                    match.advance(byte)
        self._num_followed = len(token_ids)

    def completing(self) -> list[Indices]:
        """The ids that would complete a phrase now, in several lists."""
        longest = self._vocabulary.longest_text
        rests = (
            self._vocabulary.starting_with(match.text[length:])
            for match in self._matches
            for length in match.lengths()
            if 0 < len(match.text) - length <= longest
        )
        return [self._containing, *rests]
