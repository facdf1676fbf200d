"""Find the number of threads that decodes fastest now, by measuring the engine's own steps.

Decoding waits for the slowest thread at every layer, so one busy core makes all threads late:
with one of two cores taken, one thread is more than twice as fast as two. What is fastest
changes with what else the machine does, so it is measured again and again: a step on another
count now and then while things are steady, and at once when steps become slow.
"""

from collections import deque
from statistics import median

# Steps until a count is tried for the first time, and again after it was left.
FIRST_WAIT = 4
# The part of the time that trying one count may cost: a count that was twice as slow waits for
# 100 steps. More for higher counts: nothing else tells that the machine is free again.
COST_BELOW = 0.01
COST_ABOVE = 0.05
# With two steps of the probe itself, a free machine is noticed within 32 tokens.
LONGEST_WAIT_ABOVE = 24
LONGEST_WAIT_BELOW = 1000
GROWTH = 3
SLOW_STEP = 1.35
CLEARLY_SLOWER = 1.2
CLEARLY_FASTER = 0.95


class ThreadTuner:
    """Owned by the engine thread: `choose()` before a decode step, `record()` after it."""

    def __init__(self, max_threads: int) -> None:
        self._counts = candidate_counts(max_threads)
        self._current = max_threads
        self._recent: deque[float] = deque(maxlen=5)
        self._slow_times: list[float] = []
        self._batch_size = 0
        # Steps until each of the other counts is tried, and how long that was last time.
        self._waits = {count: FIRST_WAIT for count in self._counts if count != max_threads}
        self._last_waits = dict.fromkeys(self._counts, FIRST_WAIT)
        self._probe: int | None = None
        self._probe_times: list[float] = []
        self._has_changed = False

    @property
    def current(self) -> int:
        """The count that was fastest when it was last compared."""
        return self._current

    def choose(self, batch_size: int) -> int:
        """The thread count for the next decode step of `batch_size` tokens."""
        if batch_size != self._batch_size:
            # Times of another shape say nothing about this one.
            self._batch_size = batch_size
            self._recent.clear()
            self._slow_times = []
            self._probe = None
        if self._probe is None and self._waits:
            self._probe = self._count_to_try()
            self._probe_times = []
        return self._current if self._probe is None else self._probe

    def record(self, seconds: float) -> None:
        """How long the step took that `choose` was asked for."""
        if self._probe is not None:
            self._record_probe(self._probe, seconds)
            return
        for count in self._waits:
            self._waits[count] -= 1
        if len(self._recent) >= 3 and seconds > SLOW_STEP * median(self._recent):
            self._slow_times.append(seconds)
        else:
            self._slow_times = []
            self._recent.append(seconds)

    def _count_to_try(self) -> int | None:
        self._has_changed = len(self._slow_times) >= 2
        if self._has_changed:
            # What was measured before no longer compares.
            self._recent.clear()
            self._recent.extend(self._slow_times)
            self._slow_times = []
            lower = [count for count in self._counts if count < self._current]
            return lower[-1] if lower else self._counts[1]
        count = min(self._waits, key=self._waits.__getitem__)
        return count if len(self._recent) >= 3 and self._waits[count] <= 0 else None

    def _record_probe(self, count: int, seconds: float) -> None:
        self._probe_times.append(seconds)
        usual = median(self._recent)
        loss = min(self._probe_times) / usual - 1.0
        if loss < CLEARLY_SLOWER - 1.0 and len(self._probe_times) < 2:
            return
        self._probe = None
        if loss < CLEARLY_FASTER - 1.0:
            self._adopt(count)
        else:
            self._wait_longer(count, loss)

    def _adopt(self, count: int) -> None:
        del self._waits[count]
        self._last_waits[self._current] = self._waits[self._current] = FIRST_WAIT
        if self._has_changed:
            # What was slow before may be fast now.
            self._waits = dict.fromkeys(self._waits, FIRST_WAIT)
            self._last_waits = dict.fromkeys(self._counts, FIRST_WAIT)
        self._current = count
        self._recent.clear()
        self._recent.extend(self._probe_times)

    def _wait_longer(self, count: int, loss: float) -> None:
        """A count took `1 + loss` of the usual time: the slower, the rarer it is tried."""
        is_above = count > self._current
        fitting = loss / (COST_ABOVE if is_above else COST_BELOW)
        longest = LONGEST_WAIT_ABOVE if is_above else LONGEST_WAIT_BELOW
        if self._has_changed:
            # Perhaps it was only a hiccup, and then the usual time is not known yet.
            self._last_waits[count] = FIRST_WAIT
        # Step by step, because a hiccup may as well have hit the probe.
        longest = min(longest, GROWTH * self._last_waits[count])
        self._waits[count] = self._last_waits[count] = int(min(longest, max(FIRST_WAIT, fitting)))


def candidate_counts(max_threads: int) -> list[int]:
    """A few counts worth trying: all cores, one less, half, a quarter."""
    return sorted(
        {
            max(1, count)
            for count in (max_threads, max_threads - 1, max_threads // 2, max_threads // 4)
        }
    )
