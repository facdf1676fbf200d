"""Wait for what another task, thread or process will do, and fail when it does not."""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 20.0


async def until(is_so: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Let the event loop run until `is_so()` is true."""
    deadline = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {patience_s:g} s in vain"
        await asyncio.sleep(0.005)
