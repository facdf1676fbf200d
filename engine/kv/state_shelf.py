"""Whole states at the places where they were taken, for models whose state cannot be cut.

A recurrent layer keeps one state, not a row for each token. So what is stored is the state after
exactly these tokens, and it serves a prompt that begins with all of them.
"""

from collections.abc import Iterator, Sequence

from engine.kv.prefix_tree import Match
from engine.kv.segment import Segment


class StateShelf:
    """Owned by the engine thread. A segment here holds all tokens from the first; none has a
    parent or children."""

    def __init__(self) -> None:
        self._states: set[Segment] = set()

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, segment: Segment) -> bool:
        return segment in self._states

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._states))

    def match(self, token_ids: Sequence[int], limit: int) -> Match:
        """The longest state after a beginning of `token_ids[:limit]`."""
        wanted = tuple(token_ids[:limit])
        fitting = [state for state in self._states if wanted[: state.num_tokens] == state.token_ids]
        if not fitting:
            return Match()
        longest = max(fitting, key=lambda state: state.num_tokens)
        return Match((longest,), longest.num_tokens)

    def add(self, prefix: Sequence[int], start: int) -> Segment:
        assert start == 0 < len(prefix), "a state has no parts"
        state = Segment(None, 0, tuple(prefix))
        self.link(state)
        return state

    def link(self, state: Segment) -> None:
        self._states.add(state)

    def remove(self, state: Segment) -> list[Segment]:
        self._states.remove(state)
        return [state]

    def check(self) -> None:
        assert all(state.start == 0 and state.parent is None for state in self._states)
        assert len({state.token_ids for state in self._states}) == len(self._states)
