"""The cores that this process may use."""

import os

import psutil

from engine.cores import usable_cores


def test_the_threads_are_no_more_than_this_process_may_use() -> None:
    """Fewer than the cores, in a container or under taskset: then each would get two threads."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count()
    assert cores is not None
    if not hasattr(os, "sched_setaffinity"):
        assert usable_cores() == cores
        return
    allowed = os.sched_getaffinity(0)
    assert usable_cores() == min(cores, len(allowed))
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
