"""Files read ahead of whoever needs them, into few buffers that are used again and again.

    prefetch(a, b, c, d)     thread:   [read a][read b]         [read c]   [read d]
    read(a), copy            engine:           [copy a ........][copy b ...]

Of the four buffers two hold what was given last, and two what is read ahead.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.kv.segment import Blob
from engine.kv.segment_file import ALIGNMENT, decode_file

NUM_LENT = 2
NUM_AHEAD = 2


class Buffer:
    """Memory that grows on demand; in use by one thread at a time."""

    def __init__(self) -> None:
        self._bytes: Blob = np.empty(0, np.uint8)

    def resized(self, num_bytes: int) -> Blob:
        """The first `num_bytes` of it, aligned; what it held is lost."""
        if len(self._bytes) < num_bytes + ALIGNMENT:
            self._bytes = np.empty(num_bytes + ALIGNMENT, np.uint8)
        start = -self._bytes.ctypes.data % ALIGNMENT
        return self._bytes[start : start + num_bytes]


class Wanted(NamedTuple):
    key: bytes
    num_bytes: int
    """Of the whole file. One of another length is not even looked at."""


class _Ahead(NamedTuple):
    key: bytes
    buffer: Buffer
    blob: "Future[Blob | None]"


class SegmentReader:
    """Owned by the engine thread; its own thread does nothing but fill buffers."""

    def __init__(self, namespace: bytes, path_of: Callable[[bytes], Path]) -> None:
        self._namespace = namespace
        self._path_of = path_of
        self._free = [Buffer() for _ in range(NUM_LENT + NUM_AHEAD)]
        self._lent: deque[Buffer] = deque()
        self._ahead: deque[_Ahead] = deque()
        self._wanted: deque[Wanted] = deque()
        self._thread = ThreadPoolExecutor(1, "kv-reader")

    def prefetch(self, wanted: Iterable[Wanted]) -> None:
        """Read these next, in this order, instead of what was asked for before."""
        while self._ahead:
            self._give_up_first()
        self._wanted = deque(wanted)
        self._read_ahead()

    def read(self, wanted: Wanted) -> Blob | None:
        """The blob, checked; valid until the next but one call. None: gone or damaged."""
        if len(self._lent) == NUM_LENT:
            self._free.append(self._lent.popleft())
        if any(each.key == wanted.key for each in self._ahead):
            # What was asked for before it has been left out.
            while self._ahead[0].key != wanted.key:
                self._give_up_first()
            _, buffer, future = self._ahead.popleft()
            blob = future.result()
        else:
            buffer = self._free.pop()
            blob = self._load(wanted, buffer)
        self._lent.append(buffer)
        self._read_ahead()
        return blob

    def close(self) -> None:
        """Give the memory back; what was read stays valid for whoever still holds it."""
        self._wanted.clear()
        self._thread.shutdown(cancel_futures=True)
        self._ahead.clear()
        self._lent.clear()
        self._free.clear()

    def _read_ahead(self) -> None:
        while self._wanted and len(self._ahead) < NUM_AHEAD:
            wanted = self._wanted.popleft()
            buffer = self._free.pop()
            future = self._thread.submit(self._load, wanted, buffer)
            self._ahead.append(_Ahead(wanted.key, buffer, future))

    def _give_up_first(self) -> None:
        _, buffer, future = self._ahead.popleft()
        if not future.cancel():
            # The buffer must not be filled any more when somebody else gets it.
            future.result()
        self._free.append(buffer)

    def _load(self, wanted: Wanted, buffer: Buffer) -> Blob | None:
        try:
            with open(self._path_of(wanted.key), "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size != wanted.num_bytes:
                    return None
                data = buffer.resized(wanted.num_bytes)
                num_read = 0
                while num_read < wanted.num_bytes:
                    count = file.readinto(data[num_read:].data)
                    if not count:
                        return None
                    num_read += count
        except OSError:
            return None
        return decode_file(data, self._namespace, wanted.key)
