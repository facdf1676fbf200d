"""What may come next, guessed from what was said: prompt lookup.

An answer about a document, an edit of a text, code that is written again: they repeat long
stretches of their own conversation. Where the last tokens occurred before, what followed them then
is the guess. No second model is needed (Saxena, "Prompt Lookup Decoding", 2023).
"""

from collections.abc import Sequence

from engine.media import first_media_id

# So many tokens must have occurred before.
NGRAM = 3
# The more occurred before, the better is the guess: where the next class of them begins.
LONGER_MATCHES = 8, 24
# Of several places: how many are compared, and how far back.
MOST_PLACES = 8
LONGEST_MATCH = 32

Gram = tuple[int, ...]


class PromptLookup:
    """The tokens of one request, by every few that follow one another. Owned by its drafter."""

    def __init__(self) -> None:
        self._token_ids: list[int] = []
        # Where each gram last ended, and for each place where the same gram ended before.
        self._last: dict[Gram, int] = {}
        self._earlier: list[int | None] = []

    def __len__(self) -> int:
        return len(self._token_ids)

    def extend(self, token_ids: Sequence[int]) -> None:
        """Add the next tokens of prompt and answer."""
        for token_id in token_ids:
            self._token_ids.append(token_id)
            end = len(self._token_ids)
            gram = tuple(self._token_ids[-NGRAM:])
            self._earlier.append(self._last.get(gram) if len(gram) == NGRAM else None)
            if len(gram) == NGRAM:
                self._last[gram] = end

    def guess(self, most: int) -> tuple[Sequence[int], int]:
        """At most so many tokens, and how many of the newest ones stood before them: of the
        longest such match, and among equals of the newest. Nothing and 0 when there is none."""
        best_end, best_length = None, 0
        end = self._earlier[-1] if self._earlier else None
        for _ in range(MOST_PLACES):
            if end is None:
                break
            length = self._match_length(end)
            if length > best_length:
                best_end, best_length = end, length
            end = self._earlier[end - 1]
        if best_end is None:
            return (), 0
        guessed = self._token_ids[best_end : best_end + most]
        place = first_media_id(guessed)
        # A picture is nothing that can be said again.
        return (guessed, best_length) if place is None else (guessed[:place], best_length)

    def _match_length(self, end: int) -> int:
        token_ids = self._token_ids
        length = NGRAM
        while (
            length < LONGEST_MATCH
            and length < end
            and token_ids[end - 1 - length] == token_ids[-1 - length]
        ):
            length += 1
        return length
