"""All stored segments: a tree for each kind, and the longest beginning over all of them.

What may reach the disk stands apart from what may not. Two conversations that begin alike would
otherwise share a segment with the words of both in it, and a temporary chat's would be written
with the other's. So a beginning that both kinds have in common is stored once in each.
"""

from collections.abc import Iterator, Sequence

from engine.kv.prefix_tree import Match, PrefixTree
from engine.kv.segment import Kind, Segment
from engine.kv.state_shelf import StateShelf


class PrefixIndex:
    """Owned by the engine thread. `can_cut`: whether a model's KV comes in ranges of tokens."""

    def __init__(self, *, can_cut: bool) -> None:
        self._trees = {
            Kind(is_canonical, is_durable): PrefixTree() if can_cut else StateShelf()
            for is_canonical in (False, True)
            for is_durable in (False, True)
        }

    def __len__(self) -> int:
        return sum(len(tree) for tree in self._trees.values())

    def __contains__(self, segment: Segment) -> bool:
        return segment in self._trees[segment.kind]

    def __iter__(self) -> Iterator[Segment]:
        """Every segment; the trees may change meanwhile."""
        return (segment for tree in self._trees.values() for segment in tree)

    def match(self, token_ids: Sequence[int], limit: int, *, is_canonical: bool = False) -> Match:
        """The longest stored beginning of `token_ids[:limit]`; `is_canonical`: of that kind only.

        Among equals the canonical one, and one that outlives the process.
        """
        kinds = [kind for kind in self._trees if kind.is_canonical or not is_canonical]
        matches = [self.match_kind(token_ids, limit, kind) for kind in sorted(kinds, reverse=True)]
        return max(matches, key=lambda match: match.length)

    def match_kind(self, token_ids: Sequence[int], limit: int, kind: Kind) -> Match:
        return self._trees[kind].match(token_ids, limit)

    def matches(self, token_ids: Sequence[int]) -> Iterator[Match]:
        """The longest beginning in each tree."""
        return (tree.match(token_ids, len(token_ids)) for tree in self._trees.values())

    def add(self, prefix: Sequence[int], start: int, kind: Kind) -> Segment:
        """A segment of this kind for `prefix[start:]`; its first `start` tokens are stored."""
        segment = self._trees[kind].add(prefix, start)
        segment.kind = kind
        return segment

    def link(self, segment: Segment) -> None:
        self._trees[segment.kind].link(segment)

    def remove(self, segment: Segment) -> list[Segment]:
        """Take out a segment and all that stands on it, the deepest first."""
        return self._trees[segment.kind].remove(segment)

    def shorten(self, segment: Segment, num_tokens: int) -> list[Segment] | None:
        """Keep its first tokens, and give what stood on the rest. None: a state has no parts."""
        tree = self._trees[segment.kind]
        return tree.shorten(segment, num_tokens) if isinstance(tree, PrefixTree) else None

    def check(self) -> None:
        for kind, tree in self._trees.items():
            tree.check()
            assert all(segment.kind == kind for segment in tree)
