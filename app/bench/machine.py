"""Where a benchmark ran, and how much of the machine others were using meanwhile."""

import os
import platform
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import psutil

from app.machine.processor import cpu_name


def machine(**more: Any) -> dict[str, Any]:
    """The facts that belong beside every figure; `more` are the model, threads and context."""
    return {
        "cpu": cpu_name(),
        "cores": psutil.cpu_count(logical=False),
        "logical_cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "load_at_start": [round(load, 2) for load in psutil.getloadavg()],
        **more,
    }


@dataclass(frozen=True, slots=True)
class Used:
    """What a process has used: processor time, and bytes that go to the disk (None: this system
    does not tell)."""

    processor_s: float = 0.0
    written_bytes: int | None = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.processor_s + other.processor_s,
            None
            if self.written_bytes is None or other.written_bytes is None
            else self.written_bytes + other.written_bytes,
        )

    def __sub__(self, other: "Used") -> "Used":
        less = None if other.written_bytes is None else -other.written_bytes
        return self + Used(-other.processor_s, less)


def used_by(pid: int) -> Used | None:
    """By the process and its children so far. None: it is gone."""
    used = Used()
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            written = one.io_counters().write_bytes if hasattr(one, "io_counters") else None
            used += Used(times.user + times.system, written)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return used


@dataclass(frozen=True, slots=True)
class _Times:
    wall: float
    busy: float
    own: float


class Others:
    """How many cores other programs kept busy inside the block, in `cores` afterwards.

    What this process and `own` (processes that belong to the benchmark) used does not count.
    """

    def __init__(self, own: tuple[int, ...] = ()) -> None:
        self._own = [psutil.Process(), *map(psutil.Process, own)]
        self.cores = 0.0

    def __enter__(self) -> Self:
        self._before = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        before, after = self._before, self._now()
        busy = (after.busy - before.busy) - (after.own - before.own)
        self.cores = max(0.0, busy / max(1e-3, after.wall - before.wall))

    def _now(self) -> _Times:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # A guest's time is counted in the user's already.
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        own = 0.0
        for process in self._own:
            try:
                used = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            own += used.user + used.system
        return _Times(perf_counter(), sum(times) - idle - guests, own)
