"""Work that is done in the background whenever there is some, one round after the other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


class Background:
    """`work` is one round, which does all there is; who wakes it meanwhile gets another one. What
    ends it is logged after `failure`, and the next waking begins again. Owned by the event loop."""

    def __init__(self, work: Callable[[], Awaitable[None]], failure: str) -> None:
        self._work = work
        self._failure = failure
        self._running: asyncio.Task[None] | None = None
        self.is_woken = False
        """Another round comes after this one."""

    @property
    def is_working(self) -> bool:
        return self._running is not None and not self._running.done()

    def wake(self) -> None:
        """Begin, if nothing is going on."""
        self.is_woken = True
        if not self.is_working:
            self._running = asyncio.create_task(self._run())
            self._running.add_done_callback(self._note_end)

    async def settled(self) -> None:
        """Wait until nothing is left to do. Raises what ended the work, if something did."""
        if self._running is not None:
            await asyncio.shield(self._running)

    async def rested(self, timeout_s: float) -> None:
        """As `settled`, for so many seconds at most."""
        if self._running is not None:
            await asyncio.wait([self._running], timeout=timeout_s)
            if self._running.done():
                self._running.result()

    async def close(self) -> None:
        """End it in the middle; it is over when this returns."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        while self.is_woken:
            self.is_woken = False
            await self._work()

    def _note_end(self, running: asyncio.Task[None]) -> None:
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.warning("%s: %s", self._failure, error)
