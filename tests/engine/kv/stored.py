"""An endless tree of segments that are the same wherever they are made: 1 is the root, and the
children of n are 2n and 2n + 1; 0 stands alone. What is read can be compared with what must have
been written.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.kv.disk import StoredSegment, Written
from engine.kv.disk_folder import DiskFolder
from engine.kv.segment import Blob, checksum_of

NAMESPACE = bytes(range(32))
OTHER_NAMESPACE = bytes(range(100, 132))
NUM_TOKENS = 16
OWNERS = {"a": NUM_TOKENS, "größe 🙂": 3}


def key_of(number: int) -> bytes:
    return number.to_bytes(16, "little")


def number_of(key: bytes) -> int:
    return int.from_bytes(key, "little")


def blob_of(number: int, num_bytes: int = 5000) -> Blob:
    # Lengths differ, so that a file in the place of another one is mostly found by its length.
    return np.random.default_rng(number).integers(0, 256, num_bytes + number % 7, np.uint8)


def stored(number: int, num_bytes: int = 5000) -> StoredSegment:
    blob = blob_of(number, num_bytes)
    tokens = np.random.default_rng(-number % 2**32).integers(0, 2**31, NUM_TOKENS)
    return StoredSegment(
        key=key_of(number),
        parent_key=key_of(number // 2) if number > 1 else b"",
        start=NUM_TOKENS * max(0, number.bit_length() - 1),
        token_ids=tuple(tokens.tolist()),
        is_canonical=number % 2 == 0,
        num_used=OWNERS,
        last_used=1e9 + number,
        num_bytes=blob.nbytes,
        checksum=checksum_of(blob),
    )


def write(disk: DiskFolder, *numbers: int, num_bytes: int = 5000) -> list[Written]:
    """Write these, and wait until all that was asked for until now is done."""
    for number in numbers:
        disk.write(stored(number, num_bytes), blob_of(number, num_bytes))
    written: list[Written] = []
    wait_until(lambda: (written.extend(disk.poll()), disk.num_pending_bytes == 0)[1])
    return written


def wait_until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def settle(disk: DiskFolder) -> None:
    """Wait until everything asked for is done. Leaves number 0."""
    assert not [each for each in write(disk, 0) if each.error]


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def num_bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_in(folder))
