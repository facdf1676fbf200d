"""Who waits for what may be stuck does so for a while only."""

import asyncio

import pytest

from app.documents.embedding.patience import Patience
from tests.waiting import until


class Slow:
    """Work that ends when `gate` is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.num_begun = 0
        self.num_done = 0

    async def work(self) -> int:
        self.num_begun += 1
        await self.gate.wait()
        self.num_done += 1
        return self.num_done


async def test_what_comes_in_time_is_given() -> None:
    slow = Slow()
    slow.gate.set()
    assert await Patience[int](30).wait_for(slow.work) == 1


async def test_what_goes_wrong_in_time_is_raised() -> None:
    async def fail() -> int:
        raise ValueError("it is broken")

    with pytest.raises(ValueError, match="it is broken"):
        await Patience[int](30).wait_for(fail)


async def test_what_comes_too_late_goes_on_and_nobody_else_waits_until_it_is_over() -> None:
    slow, patience = Slow(), Patience[int](0.01)
    assert await patience.wait_for(slow.work) is None
    assert await patience.wait_for(slow.work) is None
    assert slow.num_begun == 1
    slow.gate.set()
    await until(lambda: slow.num_done == 1)
    await until(lambda: not patience._late)
    assert await patience.wait_for(slow.work) == 2


async def test_who_is_cancelled_leaves_the_work_to_itself_and_the_next_one_waits() -> None:
    slow, patience = Slow(), Patience[int](30)
    waiting = asyncio.create_task(patience.wait_for(slow.work))
    await until(lambda: slow.num_begun == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    other = asyncio.create_task(patience.wait_for(slow.work))
    await until(lambda: slow.num_begun == 2)
    slow.gate.set()
    assert await other == 2


async def test_closing_ends_what_is_late() -> None:
    slow, patience = Slow(), Patience[int](0.01)
    await patience.wait_for(slow.work)
    await patience.close()
    assert slow.num_done == 0 and not patience._asked
    await patience.close()
