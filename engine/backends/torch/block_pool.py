"""KV blocks counted by how many sequences hold them."""

from collections.abc import Iterable, Sequence


class BlockPool:
    """Names for the blocks of a KV memory. Owned by the engine thread.

    A forked sequence shares blocks, so a block is free again only when its last holder lets go.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._ref_counts = [0] * num_blocks

    @property
    def num_free(self) -> int:
        return len(self._free)

    def allocate(self, count: int) -> list[int] | None:
        """`count` blocks with one holder each. None: no room, nothing changed."""
        if count > len(self._free):
            return None
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            self._ref_counts[block] = 1
        return blocks

    def is_shared(self, block: int) -> bool:
        return self._ref_counts[block] > 1

    def share(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            self._ref_counts[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Let go of each of `blocks`, which must be held."""
        for block in blocks:
            self._ref_counts[block] -= 1
            if self._ref_counts[block] == 0:
                self._free.append(block)

    def check(self, tables: Sequence[Sequence[int]]) -> None:
        """Every block is free or held, and as often as it stands in the tables of all holders."""
        held = [0] * self.num_blocks
        for table in tables:
            assert len(set(table)) == len(table), "a block twice in one table"
            for block in table:
                held[block] += 1
        assert held == self._ref_counts
        assert sorted(self._free) == [b for b, count in enumerate(held) if count == 0]
