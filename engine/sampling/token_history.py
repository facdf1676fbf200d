"""The tokens of one request as an array, without converting all of them at every step."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class TokenHistory:
    """Follows a growing list. Owned by the state of one request."""

    def __init__(self) -> None:
        self._tokens = np.empty(256, dtype=np.int32)
        self._length = 0

    @property
    def tokens(self) -> NDArray[np.int32]:
        """Those so far; a view, good until the next `follow`."""
        return self._tokens[: self._length]

    def copy(self) -> "TokenHistory":
        other = TokenHistory()
        other._tokens, other._length = self._tokens.copy(), self._length
        return other

    def follow(self, token_ids: Sequence[int]) -> None:
        """Take in what is new in `token_ids`."""
        new = token_ids[self._length :]
        needed = self._length + len(new)
        if needed > len(self._tokens):
            larger = np.empty(2 * needed, dtype=np.int32)
            larger[: self._length] = self.tokens
            self._tokens = larger
        self._tokens[self._length : needed] = new
        self._length = needed
