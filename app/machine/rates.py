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
from time import perf_counter
from typing import Any

import numpy as np
import psutil

from app.machine.processor import cpu_name
from app.paths import Paths
from app.private_file import write_private
from app.version import version_of
from engine.cores import usable_cores

FORM = 1
"""To be raised when something is measured in another way, so that old figures are not shown."""
READ_BYTES = 256 * 2**20
"""Far more than the caches of a processor hold."""
NUM_READINGS = 6
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


def known_rates(paths: Paths, *, again: bool = False) -> Rates:
    """Those that were measured on this machine before, or else measured now, and kept.

    `again`: measure them in any case. Blocks for the second or two that this takes.
    """
    kept = None if again else kept_rates(paths)
    if kept is not None:
        return kept
    rates = measure_rates()
    keep(paths, rates)
    return rates


def kept_rates(paths: Paths) -> Rates | None:
    """What was measured before, without measuring. None: nothing, or on another machine."""
    try:
        found: Any = json.loads(place(paths).read_text(encoding="utf-8"))
        if found["fingerprint"] != fingerprint():
            return None
        rates = Rates(**found["rates"])
    except (OSError, ValueError, TypeError, KeyError):
        # Not there, or not ours: measuring again makes it right.
        return None
    figures = (rates.read_bytes_per_s, rates.multiply_adds_per_s, rates.num_threads)
    is_sound = all(isinstance(each, int | float) and each > 0 for each in figures)
    return rates if is_sound else None


def keep(paths: Paths, rates: Rates) -> None:
    """Raises OSError where the cache cannot be written."""
    text = json.dumps({"fingerprint": fingerprint(), "rates": asdict(rates)}, indent=1)
    write_private(place(paths), text + "\n")


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
