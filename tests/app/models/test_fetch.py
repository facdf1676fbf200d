"""Work on a file is never left half done in a thread; the rest is seen in test_download.py."""

import asyncio
import threading

import pytest

from app.models.fetch import settled
from tests.waiting import until


async def test_who_is_cancelled_waits_for_the_thread_that_works_for_it() -> None:
    begun, may_end = threading.Event(), threading.Event()
    done: list[bytes] = []

    def work(piece: bytes) -> None:
        begun.set()
        may_end.wait(20)
        done.append(piece)

    task = asyncio.create_task(settled(work, b"piece"))
    await until(begun.is_set)
    task.cancel()
    await asyncio.sleep(0.02)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [b"piece"]


async def test_what_the_thread_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await settled(fail)
