"""Memory and disk of this machine: how much there is, what is free, how fast a model is read."""

import mmap
import os
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psutil

READ_BYTES = 128 * 2**20
READ_SECONDS = 1.0
_PIECE = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """In bytes. Swap is room on the disk that stands in for memory, a thousand times slower."""

    total: int
    available: int
    swap_total: int
    swap_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """Of the place where a model lies. `read_bytes_per_s` None: it could not be measured."""

    place: str
    total: int
    free: int
    read_bytes_per_s: float | None


def look_at_memory() -> MemoryFacts:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return MemoryFacts(
        total=int(memory.total),
        available=int(memory.available),
        swap_total=int(swap.total),
        swap_used=int(swap.used),
    )


def look_at_disk(file: Path) -> DiskFacts:
    """Reads a piece of the file, for a second at most. Raises OSError where there is no folder."""
    usage = shutil.disk_usage(file.parent)
    return DiskFacts(
        place=str(file.parent),
        total=usage.total,
        free=usage.free,
        read_bytes_per_s=read_speed(file) if file.is_file() else None,
    )


def read_speed(file: Path) -> float | None:
    """Bytes a second from the disk itself: past the memory in which the system keeps files.

    None where the system has no such way (macOS, Windows, some file systems): what it keeps of the
    file would be measured instead.
    """
    if not hasattr(os, "O_DIRECT") or not hasattr(os, "preadv"):
        return None
    num_bytes = 0
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return None
    # Such reads need a place that begins with a page of memory.
    with closing(mmap.mmap(-1, _PIECE)) as piece:
        began = perf_counter()
        try:
            while num_bytes < READ_BYTES and perf_counter() - began < READ_SECONDS:
                read = os.preadv(descriptor, [piece], num_bytes)
                num_bytes += read
                if read < _PIECE:
                    break
        except OSError:
            return None
        finally:
            os.close(descriptor)
        seconds = perf_counter() - began
    return num_bytes / seconds if num_bytes else None
