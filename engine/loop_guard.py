"""The guard that notices an answer which repeats itself without end."""

from collections import deque
from collections.abc import Sequence

import numpy as np

LOOP_NOTICE = (
    "The answer repeated the same text over and over, so it was ended; try again, or raise the"
    " repetition penalty in the settings."
)

# A block must come back six times, and over 384 tokens: a line of dashes, a laugh, an empty table,
# a hundred zeros or a line written out fifty times stay below; so does a paragraph written five
# times, however long it is.
MIN_REPEATS = 6
MIN_TOKENS = 384

# Six blocks of 160 are seen within an answer of the default length, 1024 tokens.
MAX_BLOCK = 160

CHECK_EVERY = 32


class LoopGuard:
    """Watches the generated tokens of one request. Owned by the engine thread.

    A loop is a tail in which each token equals the one a block earlier. Looking every 32 tokens
    costs about a microsecond per token and sees a loop at most 31 tokens late.
    """

    def __init__(self) -> None:
        self._tail: deque[int] = deque(maxlen=MIN_REPEATS * MAX_BLOCK)
        self._num_tokens = 0
        self._is_loop = False

    def feed(self, token_id: int) -> bool:
        """Whether the answer was in a loop when it was looked at last."""
        self._tail.append(token_id)
        self._num_tokens += 1
        if self._num_tokens >= MIN_TOKENS and self._num_tokens % CHECK_EVERY == 0:
            self._is_loop = self._repeats(token_id)
        return self._is_loop

    def _repeats(self, token_id: int) -> bool:
        tail = np.fromiter(self._tail, dtype=np.int64, count=len(self._tail))
        # The newest token occurs a block ago, or that is not the block.
        recent = tail[-MAX_BLOCK - 1 : -1][::-1]
        for block in (np.flatnonzero(recent == token_id) + 1).tolist():
            length = max(MIN_TOKENS, MIN_REPEATS * block)
            if length <= len(tail) and np.array_equal(tail[-length:-block], tail[block - length :]):
                return True
        return False


def is_loop(token_ids: Sequence[int]) -> bool:
    """Whether the guard would end an answer after the last of these tokens."""
    if len(token_ids) < MIN_TOKENS or len(token_ids) % CHECK_EVERY:
        return False
    guard = LoopGuard()
    return [guard.feed(token_id) for token_id in token_ids][-1]
