"""The cell pool: every cell is free or referenced, whatever was asked."""

import random
from collections import Counter

import numpy as np
import pytest

from engine.kv.cell_pool import CellPool


def test_more_cells_than_are_free_are_refused_and_nothing_changes() -> None:
    pool = CellPool(4)
    assert pool.allocate(3) is not None
    assert pool.allocate(2) is None
    assert pool.num_free == 1
    pool.check()


def test_a_shared_cell_is_free_when_its_last_sequence_lets_go() -> None:
    pool = CellPool(4)
    cells = pool.allocate(2)
    assert cells is not None
    pool.share(cells)
    pool.release(cells)
    assert pool.num_free == 2
    pool.release(cells)
    assert pool.num_free == 4
    pool.check()


def test_what_is_handed_out_does_not_change_afterwards() -> None:
    pool = CellPool(4)
    cells = pool.allocate(2)
    assert cells is not None
    before = cells.tolist()
    pool.release(cells)
    pool.allocate(4)
    assert cells.tolist() == before


@pytest.mark.parametrize("seed", range(3))
def test_a_random_history_loses_no_cell_and_gives_none_twice(seed: int) -> None:
    choose = random.Random(seed)
    pool = CellPool(32)
    held: list[np.ndarray] = []
    for _ in range(2000):
        match choose.randrange(3):
            case 0:
                count = choose.randrange(0, 12)
                free = pool.num_free
                cells = pool.allocate(count)
                assert (cells is None) == (count > free)
                if cells is not None:
                    assert not set(cells.tolist()) & {c for each in held for c in each.tolist()}
                    held.append(cells)
            case 1 if held:
                cells = choose.choice(held)
                part = cells[: choose.randrange(len(cells) + 1)].copy()
                pool.share(part)
                held.append(part)
            case 2 if held:
                pool.release(held.pop(choose.randrange(len(held))))
        pool.check()
        references = Counter(cell for cells in held for cell in cells.tolist())
        assert pool.num_free == 32 - len(references)
