"""The library follows its folders: what changes there is looked at two seconds later.

Where a system cannot watch, and for what it does not tell (other machines' disks), every root is
looked at again every quarter of an hour.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeVar

from sqlite_utils import Database as Tables
from watchfiles import awatch

from app.documents.roots import root_of
from app.documents.rows import Root, roots
from engine.errors import InglenookError

TRY_AGAIN_S = 60.0
"""Until a library that could not be prepared, as on a full disk, is tried again."""
LOOK_S = 15 * 60.0
QUIET_MS = 2_000
"""So long nothing must happen before it is looked."""
LONGEST_UNQUIET_S = 20.0
STEP_MS = 100
"""How often the system is asked, and how long an end is waited for."""

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Followed(Protocol):
    """The library, as it is watched."""

    async def prepare(self) -> None: ...

    async def look(self, place: Path | None = None) -> None: ...

    async def tidy(self) -> None: ...

    async def ask(self, work: Callable[[Tables], Answer]) -> Answer: ...

    def is_own(self, path: Path) -> bool: ...

    def roots_moved(self) -> asyncio.Event: ...


class Watch:
    """Owned by the event loop. `notice` says what cannot be watched, or is empty."""

    def __init__(self, library: Followed, look_s: float = LOOK_S, quiet_ms: int = QUIET_MS) -> None:
        self._library = library
        self._look_s = look_s
        self._quiet_ms = quiet_ms
        self.notice = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while not await self._is_prepared():
            await asyncio.sleep(TRY_AGAIN_S)
        while True:
            moved = self._library.roots_moved()
            there = await self._look_at_all()
            stop = asyncio.Event()
            self.notice = ""
            following = asyncio.gather(
                self._follow([root for root in there if root.is_folder], stop, recursive=True),
                # A file that is replaced by another is seen in its folder only.
                self._follow([root for root in there if not root.is_folder], stop, recursive=False),
            )
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(moved.wait(), self._look_s)
            finally:
                stop.set()
                await following

    async def _is_prepared(self) -> bool:
        try:
            await self._library.prepare()
        except InglenookError as error:
            logger.warning("the library is not ready, and is tried again soon: %s", error)
            return False
        return True

    async def _look_at_all(self) -> list[Root]:
        try:
            await self._library.look()
            await self._library.tidy()
            return [root for root in await self._library.ask(roots) if root.is_there]
        except InglenookError as error:
            # Such as a full disk: the next look tries again.
            logger.warning("the folders could not be looked at: %s", error)
            return []

    async def _follow(self, there: Sequence[Root], stop: asyncio.Event, *, recursive: bool) -> None:
        if not there:
            return
        places = [root.path if recursive else str(Path(root.path).parent) for root in there]
        changes = awatch(
            *dict.fromkeys(places),
            # A filter of its own would hide that it is quiet but for what nobody asked about.
            watch_filter=None,
            step=STEP_MS,
            debounce=2 * STEP_MS,
            stop_event=stop,
            recursive=recursive,
            ignore_permission_denied=True,
            rust_timeout=self._quiet_ms,
            yield_on_timeout=True,
        )
        touched: set[str] = set()
        first = last = 0.0
        try:
            async for seen in changes:
                now = monotonic()
                moved = {root.path for _, path in seen if (root := self._root_of(there, path))}
                if moved:
                    first, last = first if touched else now, now
                    touched |= moved
                # Nothing was seen: it has been quiet for so long.
                is_quiet = not seen or now - last >= self._quiet_ms / 1000
                if touched and (is_quiet or now - first > LONGEST_UNQUIET_S):
                    await self._look_at(sorted(touched))
                    touched.clear()
        except (OSError, RuntimeError) as error:
            self.notice = (
                f"Changes in {there[0].path} are not noticed at once ({error}): it is looked at"
                f" every {self._look_s / 60:.0f} minutes."
            )
            logger.warning("%s", self.notice)

    def _root_of(self, there: Sequence[Root], path: str) -> Root | None:
        """Whose walk comes to it, if any. What the library itself writes is no change of a root, or
        each look would be followed by the next one."""
        root = root_of(there, path)
        return None if root is None or self._library.is_own(Path(path)) else root

    async def _look_at(self, places: Sequence[str]) -> None:
        for place in places:
            try:
                await self._library.look(Path(place))
            except InglenookError as error:
                logger.warning("a folder could not be looked at: %s", error)
