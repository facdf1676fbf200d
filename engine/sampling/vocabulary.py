"""What the sampler asks of a vocabulary: which tokens end, break a line, or spell something."""

from bisect import bisect_left
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.sampling.candidates import Indices
from engine.tokenizer import Tokenizer


class SamplingVocabulary:
    """Owned by the sampler. All tokens are spelled when a request first needs it (XTC, banned
    phrases): once for a model, which took 0.2 s for 49,000 tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.num_tokens = tokenizer.num_tokens

    def spell(self, token_id: int) -> bytes:
        """What a token adds to an answer; the places of a picture add nothing."""
        return b"" if token_id < 0 else self._tokenizer.token_bytes(token_id)

    @cached_property
    def ends(self) -> Indices:
        """The ids that end an answer."""
        is_end = self._tokenizer.is_end
        return _ids([each for each in range(self.num_tokens) if is_end(each)])

    @cached_property
    def line_breaks(self) -> Indices:
        """The ids of tokens that are made of line breaks."""
        return _ids([i for i, text in enumerate(self._texts) if text and not text.strip(b"\r\n")])

    @cached_property
    def ends_and_line_breaks(self) -> Indices:
        return np.union1d(self.ends, self.line_breaks)

    @cached_property
    def longest_text(self) -> int:
        """In bytes."""
        return max(map(len, self._texts))

    def starting_with(self, text: bytes) -> Indices:
        """The ids of tokens that begin with a text, which is no empty one and ends in no 0xFF."""
        after = text[:-1] + bytes([text[-1] + 1])
        first, last = bisect_left(self._sorted_texts, text), bisect_left(self._sorted_texts, after)
        return self._sorted_ids[first:last]

    def containing(self, text: bytes) -> Indices:
        """The ascending ids of tokens that have a text in them."""
        joined, ends = self._joined, self._ends_of_texts
        places = np.flatnonzero(joined[: max(0, len(joined) - len(text) + 1)] == text[0])
        for offset in range(1, len(text)):
            places = places[joined[places + offset] == text[offset]]
        token_ids = np.searchsorted(ends, places, side="right")
        # Others lie across tokens that are neighbours by chance.
        return np.unique(token_ids[places + len(text) <= ends[token_ids]])

    @cached_property
    def _texts(self) -> list[bytes]:
        return [self.spell(token_id) for token_id in range(self.num_tokens)]

    @cached_property
    def _joined(self) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(self._texts), np.uint8)

    @cached_property
    def _ends_of_texts(self) -> Indices:
        return np.cumsum(_ids([len(text) for text in self._texts]))

    @cached_property
    def _sorted_ids(self) -> Indices:
        return _ids(sorted(range(self.num_tokens), key=self._texts.__getitem__))

    @cached_property
    def _sorted_texts(self) -> list[bytes]:
        return sorted(self._texts)


def _ids(ids: list[int]) -> Indices:
    return np.array(ids, dtype=np.intp)
