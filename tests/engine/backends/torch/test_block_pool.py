"""Blocks, counted."""

import random

from engine.backends.torch.block_pool import BlockPool


def test_a_random_history_loses_no_block() -> None:
    pool = BlockPool(8)
    chance = random.Random(1)
    tables: list[list[int]] = []
    for _ in range(2000):
        match chance.randrange(3):
            case 0:
                wanted = chance.randrange(4)
                free = pool.num_free
                blocks = pool.allocate(wanted)
                assert (blocks is None) == (wanted > free)
                tables += [] if blocks is None else [blocks]
            case 1 if tables:
                shared = list(chance.choice(tables))
                pool.share(shared)
                tables.append(shared)
            case 2 if tables:
                pool.release(tables.pop(chance.randrange(len(tables))))
        pool.check(tables)


def test_a_block_is_free_only_when_its_last_holder_lets_go() -> None:
    pool = BlockPool(1)
    blocks = pool.allocate(1)
    assert blocks is not None
    pool.share(blocks)
    assert pool.is_shared(blocks[0])
    pool.release(blocks)
    assert pool.allocate(1) is None
    pool.release(blocks)
    assert pool.allocate(1) == blocks
