"""How much memory KV outside the cells may take while the machine runs short of it."""

import time
from collections.abc import Callable

import psutil

LOW = 0.10
"""Below this part of free memory the budget is halved, again and again."""
HIGH = 0.20
"""Above it, it is doubled up to what was chosen."""
LOOK_SECONDS = 1.0


def _free_part() -> float:
    memory = psutil.virtual_memory()
    return float(memory.available / memory.total)


class MemoryPressure:
    """Owned by the engine thread. The system would end the process rather than ask."""

    def __init__(
        self,
        budget: int,
        free_part: Callable[[], float] = _free_part,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chosen = self._budget = budget
        self._free_part = free_part
        self._clock = clock
        self._next_look = clock() + LOOK_SECONDS

    def choose(self, budget: int) -> int:
        """The user's new budget, and what it is for now."""
        self._chosen = self._budget = budget
        return budget

    def budget(self) -> int | None:
        """The budget from now on, in bytes, when it has changed. Looks once a second."""
        now = self._clock()
        if now < self._next_look:
            return None
        self._next_look = now + LOOK_SECONDS
        free = self._free_part()
        wanted = self._budget
        if free < LOW:
            wanted = self._budget // 2
        elif free > HIGH:
            wanted = min(self._chosen, max(2 * self._budget, self._chosen // 64))
        if wanted == self._budget:
            return None
        self._budget = wanted
        return wanted
