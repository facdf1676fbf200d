"""The end of a process that nobody has used for a while."""

import asyncio
from collections.abc import Awaitable, Callable


class Rest:
    """`end` is called when `seconds` have gone by since it was begun last, unless it was woken.
    Owned by the event loop."""

    def __init__(self, end: Callable[[], Awaitable[None]], seconds: float) -> None:
        self._end = end
        self._seconds = seconds
        self._resting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.create_task(self._rest())

    async def wake(self) -> None:
        """An end that has begun has come when this returns."""
        resting, self._resting = self._resting, None
        if resting is not None:
            resting.cancel()
            await asyncio.wait([resting])

    async def _rest(self) -> None:
        await asyncio.sleep(self._seconds)
        await self._end()
