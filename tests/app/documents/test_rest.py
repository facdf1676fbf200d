"""What nobody uses for a while is ended, and not before."""

import asyncio

from app.documents.rest import Rest
from tests.waiting import until


class Used:
    def __init__(self) -> None:
        self.num_ends = 0

    async def end(self) -> None:
        self.num_ends += 1


async def test_it_ends_what_is_not_used_for_so_long() -> None:
    used = Used()
    Rest(used.end, 0.01).begin()
    await until(lambda: used.num_ends == 1)


async def test_who_is_woken_does_not_end() -> None:
    used = Used()
    rest = Rest(used.end, 0.02)
    rest.begin()
    await rest.wake()
    # Twice is once.
    await rest.wake()
    await asyncio.sleep(0.06)
    assert used.num_ends == 0


async def test_begun_again_it_counts_from_then_on() -> None:
    used = Used()
    rest = Rest(used.end, 30)
    rest.begin()
    rest.begin()
    await asyncio.sleep(0)
    assert used.num_ends == 0
    await rest.wake()
    assert [task for task in asyncio.all_tasks() if "Rest" in repr(task)] == []
