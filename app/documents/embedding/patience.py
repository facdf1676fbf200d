"""How long somebody waits for what may be stuck."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Found = TypeVar("Found")


class Patience(Generic[Found]):
    """Waits for so many seconds at most. What comes too late goes on, because ending it may end the
    process that is only slow to start; until it is over nobody else waits. Owned by the event loop.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked: set[asyncio.Task[Found | None]] = set()
        self._late: set[asyncio.Task[Found | None]] = set()

    async def wait_for(self, work: Callable[[], Coroutine[Any, Any, Found | None]]) -> Found | None:
        """What the work finds, or raises. None also where it takes too long."""
        if self._late:
            return None
        task = asyncio.create_task(work())
        self._asked.add(task)
        task.add_done_callback(self._over)
        await asyncio.wait({task}, timeout=self._seconds)
        if task.done():
            return task.result()
        self._late.add(task)
        return None

    async def close(self) -> None:
        """End what goes on; it is over when this returns."""
        for task in self._asked:
            task.cancel()
        if self._asked:
            await asyncio.wait(self._asked)

    def _over(self, task: "asyncio.Task[Found | None]") -> None:
        self._asked.discard(task)
        self._late.discard(task)
