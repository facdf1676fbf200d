"""Find the number of threads that decodes fastest now, by measuring the engine's own steps.

Decoding waits for the slowest thread at every layer, so one busy core makes all threads late:
with one of two cores taken, one thread is more than twice as fast as two. What is fastest
changes with what else the machine does, so it is measured again and again: a step on another
count now and then while things are steady, and at once when steps become slow.
"""

from collections import deque
from statistics import median

# Steps between probes: few after a change, twice as many after each probe that found nothing. A
# lower count is only left by a probe, so there they stay frequent enough to notice within 32
# tokens that the machine is free again; at the full count a slow step announces itself.
FIRST_PROBE_INTERVAL = 4
PROBE_INTERVAL_BELOW = 12
PROBE_INTERVAL_AT_MOST = 96
SLOW_STEP = 1.35
CLEARLY_SLOWER = 1.2
CLEARLY_FASTER = 0.95


class ThreadTuner:
    """Owned by the engine thread: `choose()` before a decode step, `record()` after it."""

    def __init__(self, max_threads: int) -> None:
        self.max_threads = max_threads
        self._counts = candidate_counts(max_threads)
        self._current = max_threads
        self._recent: deque[float] = deque(maxlen=5)
        self._batch_size = 0
        self._steps_since_probe = 0
        self._interval = FIRST_PROBE_INTERVAL
        self._probe: int | None = None
        self._probe_times: list[float] = []
        self._next_candidate = 0
        self._slow_times: list[float] = []

    @property
    def current(self) -> int:
        return self._current

    def choose(self, batch_size: int) -> int:
        """The thread count for the next decode step of `batch_size` tokens."""
        if len(self._counts) == 1:
            return self._current
        if batch_size != self._batch_size:
            # Times of another shape say nothing about this one.
            self._batch_size = batch_size
            self._recent.clear()
            self._probe = None
            self._slow_times = []
            self._interval = FIRST_PROBE_INTERVAL
        if self._probe is None and self._is_probe_due():
            self._start_probe()
        return self._current if self._probe is None else self._probe

    def record(self, seconds: float) -> None:
        """How long the step took that `choose` was asked for."""
        if self._probe is not None:
            self._record_probe(seconds)
            return
        self._steps_since_probe += 1
        if len(self._recent) >= 3 and seconds > SLOW_STEP * median(self._recent):
            self._slow_times.append(seconds)
        else:
            self._slow_times = []
            self._recent.append(seconds)

    def _is_probe_due(self) -> bool:
        if len(self._slow_times) >= 2:
            return True
        return len(self._recent) >= 3 and self._steps_since_probe >= self._interval

    def _start_probe(self) -> None:
        if self._slow_times:
            # The machine changed: what was measured before no longer compares.
            self._recent.clear()
            self._recent.extend(self._slow_times)
            self._slow_times = []
        others = [count for count in self._counts if count != self._current]
        self._probe = others[self._next_candidate % len(others)]
        self._next_candidate += 1
        self._probe_times = []

    def _record_probe(self, seconds: float) -> None:
        self._probe_times.append(seconds)
        best, usual = min(self._probe_times), median(self._recent)
        if best > CLEARLY_SLOWER * usual or len(self._probe_times) == 2:
            self._finish_probe(best < CLEARLY_FASTER * usual)

    def _finish_probe(self, adopt: bool) -> None:
        assert self._probe is not None
        if adopt:
            self._current = self._probe
            self._recent.clear()
            self._recent.extend(self._probe_times)
            self._interval = FIRST_PROBE_INTERVAL
        else:
            at_most = self._current == self.max_threads
            longest = PROBE_INTERVAL_AT_MOST if at_most else PROBE_INTERVAL_BELOW
            self._interval = min(longest, 2 * self._interval)
        self._probe = None
        self._steps_since_probe = 0


def candidate_counts(max_threads: int) -> list[int]:
    """A few counts worth trying: all cores, one less, half, one."""
    return sorted({max_threads, max(1, max_threads - 1), max(1, max_threads // 2), 1})
