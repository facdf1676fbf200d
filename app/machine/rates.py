"""The two rates that bound every model here: bytes read from memory and multiply-adds, a second.

Writing a token reads all weights once, so the first one bounds it; reading a text multiplies each
weight with many tokens, so the second one does. Both are the best that was reached within a
second or two: what else ran meanwhile makes them too low, never too high.
"""

import json
import platform
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, time
from typing import Any

import numpy as np
import psutil

from app.bench.machine import Others
from app.machine.processor import cpu_name
from app.paths import Paths
from app.private_file import write_private
from app.version import version_of
from engine.cores import usable_cores

FORM = 2
"""To be raised when something is measured in another way, so that old figures are not shown."""
READ_BYTES = 256 * 2**20
"""Far more than the caches of a processor hold."""
NUM_READINGS = 6
BUSY_CORES = 0.25
RETRY_S = 300.0
USUAL_WEIGHTS = "Q4_K"
"""What most model files have."""


@dataclass(frozen=True)
class Rates:
    """What `num_threads` threads reach together: bytes a second read from memory, and
    multiply-adds a second of llama.cpp's product of Q4_K weights with 256 columns."""

    read_bytes_per_s: float
    multiply_adds_per_s: float
    num_threads: int


def measure_rates() -> Rates:
    """Takes a second or two and all cores; raises OutOfMemory."""
    # Loading the library takes a while, and who only asks what is known should not wait for it.
    from engine.backends.llama_cpp.matrix_product import multiply_adds_per_second

    num_threads = usable_cores()
    return Rates(
        read_bytes_per_s=memory_bandwidth(num_threads),
        multiply_adds_per_s=multiply_adds_per_second(USUAL_WEIGHTS, num_threads),
        num_threads=num_threads,
    )


def memory_bandwidth(num_threads: int, num_bytes: int = READ_BYTES) -> float:
    """Bytes a second that so many threads read together: the best of a few readings.

    The largest number is looked for, since that leaves the processor waiting for memory.
    """
    parts = np.array_split(np.ones(num_bytes // 8, np.int64), num_threads)
    best = float("inf")
    with ThreadPoolExecutor(num_threads) as readers:
        for _ in range(NUM_READINGS):
            began = perf_counter()
            list(readers.map(np.max, parts))
            best = min(best, perf_counter() - began)
    return num_bytes / best


@dataclass(frozen=True)
class Kept:
    """What was measured before. `is_busy`: other programs were at work meanwhile, so the rates may
    be too low; measured `at`, in seconds of the clock."""

    rates: Rates
    is_busy: bool
    at: float


def known_rates(paths: Paths, *, again: bool = False) -> Rates:
    """Those that were measured on this machine before, or else measured now, and kept.

    `again`: measure them in any case. Blocks for the second or two that this takes. What was
    measured beside other programs is measured again by and by, and the better figures are kept.
    """
    before = kept(paths)
    if before is not None and not again:
        is_recent = 0 <= time() - before.at < RETRY_S
        if not before.is_busy or is_recent:
            return before.rates
    with Others() as others:
        rates = measure_rates()
    is_busy = others.cores > BUSY_CORES
    if before is not None and is_busy:
        rates = _best(before.rates, rates)
        is_busy = before.is_busy
    keep(paths, Kept(rates, is_busy, time()))
    return rates


def kept_rates(paths: Paths) -> Rates | None:
    """What was measured before, without measuring. None: nothing, or on another machine."""
    before = kept(paths)
    return None if before is None else before.rates


def kept(paths: Paths) -> Kept | None:
    try:
        found: Any = json.loads(place(paths).read_text(encoding="utf-8"))
        if found["fingerprint"] != fingerprint():
            return None
        before = Kept(Rates(**found["rates"]), bool(found["is_busy"]), float(found["at"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        # Not there, or not ours: measuring again makes it right.
        return None
    rates = before.rates
    figures = (rates.read_bytes_per_s, rates.multiply_adds_per_s, rates.num_threads)
    is_sound = all(isinstance(each, int | float) and each > 0 for each in figures)
    return before if is_sound else None


def _best(one: Rates, other: Rates) -> Rates:
    return Rates(
        max(one.read_bytes_per_s, other.read_bytes_per_s),
        max(one.multiply_adds_per_s, other.multiply_adds_per_s),
        other.num_threads,
    )


def keep(paths: Paths, measured: Kept) -> None:
    """Raises OSError where the cache cannot be written."""
    found = {"fingerprint": fingerprint(), **asdict(measured)}
    write_private(place(paths), json.dumps(found, indent=1) + "\n")


def place(paths: Paths) -> Path:
    return paths.cache / "machine.json"


def fingerprint() -> list[Any]:
    """What the rates depend on and can be asked without a measurement."""
    return [
        FORM,
        cpu_name(),
        platform.machine(),
        usable_cores(),
        psutil.virtual_memory().total,
        version_of("llama-cpp-python"),
    ]
