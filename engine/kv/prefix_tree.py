"""Stored token prefixes in one tree, where conversations share what they have in common.

    [system, question 1, answer 1, question 2, answer 2]     the segments of one conversation
           \\                     \\_ [another question 2 ...]   an edited turn begins inside
            \\_ [another question 1 ...]                         another conversation

A child begins exactly where it differs from its parent, so no token is stored twice, and nothing
is split or copied when a branch appears.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.kv.segment import Segment


class Match(NamedTuple):
    """The first `length` tokens are held by `segments`, in this order, the last perhaps partly."""

    segments: tuple[Segment, ...] = ()
    length: int = 0

    def steps(self) -> Iterator[tuple[Segment, int]]:
        """Each segment with the place up to which it is followed: the next one may begin inside
        the one before it."""
        ends = [*(segment.start for segment in self.segments[1:]), self.length]
        return zip(self.segments, ends, strict=False)

    def without_last(self) -> "Match":
        *others, last = self.segments
        return Match(tuple(others), last.start)


class PrefixTree:
    """Owned by the engine thread."""

    def __init__(self) -> None:
        self._roots: dict[tuple[int, int], Segment] = {}
        self._segments: set[Segment] = set()

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, segment: Segment) -> bool:
        return segment in self._segments

    def __iter__(self) -> Iterator[Segment]:
        """Every segment; the tree may change meanwhile."""
        return iter(tuple(self._segments))

    def match(self, token_ids: Sequence[int], limit: int) -> Match:
        """The longest beginning of `token_ids[:limit]` that is stored."""
        path: list[Segment] = []
        children, position = self._roots, 0
        while position < limit:
            segment = children.get((position, token_ids[position]))
            if segment is None:
                break
            path.append(segment)
            position += _num_equal(segment.token_ids, token_ids, position, limit)
            children = segment.children
        return Match(tuple(path), position)

    def add(self, prefix: Sequence[int], start: int) -> Segment:
        """A segment for `prefix[start:]`. The first `start` tokens are stored, and no more."""
        match = self.match(prefix, len(prefix))
        assert match.length == start < len(prefix), "a segment that overlaps or leaves a hole"
        parent = match.segments[-1] if match.segments else None
        segment = Segment(parent, start, tuple(prefix[start:]))
        self.link(segment)
        return segment

    def link(self, segment: Segment) -> None:
        """Put in a segment whose parent is there and that nothing overlaps."""
        siblings = self._siblings(segment)
        assert (segment.start, segment.token_ids[0]) not in siblings
        siblings[segment.start, segment.token_ids[0]] = segment
        self._segments.add(segment)

    def remove(self, segment: Segment) -> list[Segment]:
        """Take out a segment and all that stands on it, the deepest first."""
        removed: list[Segment] = []
        unseen = [segment]
        while unseen:
            each = unseen.pop()
            removed.append(each)
            unseen.extend(each.children.values())
        del self._siblings(segment)[segment.start, segment.token_ids[0]]
        self._segments.difference_update(removed)
        return removed[::-1]

    def shorten(self, segment: Segment, num_tokens: int) -> list[Segment]:
        """Keep its first `num_tokens` and what stands on them. The rest is taken out, deepest
        first; the caller makes the blob fit."""
        end = segment.start + num_tokens
        beyond = [child for child in segment.children.values() if child.start > end]
        removed = [each for child in beyond for each in self.remove(child)]
        segment.token_ids = segment.token_ids[:num_tokens]
        return removed

    def check(self) -> None:
        """Every segment stands where its parent holds the tokens before it, and is found there."""
        for segment in self._segments:
            assert self._siblings(segment)[segment.start, segment.token_ids[0]] is segment
            assert len(segment.prefix()) == segment.end
            parent = segment.parent
            if parent is None:
                assert segment.start == 0
                continue
            assert parent in self._segments
            assert parent.start < segment.start <= parent.end
            if segment.start < parent.end:
                assert parent.token_ids[segment.start - parent.start] != segment.token_ids[0]

    def _siblings(self, segment: Segment) -> dict[tuple[int, int], Segment]:
        return self._roots if segment.parent is None else segment.parent.children


def _num_equal(held: tuple[int, ...], wanted: Sequence[int], start: int, limit: int) -> int:
    """How many of `held` are the tokens of `wanted` from `start` on, up to `limit`."""
    count = min(len(held), limit - start)
    if tuple(wanted[start : start + count]) == held[:count]:
        return count
    return next(i for i in range(count) if held[i] != wanted[start + i])
