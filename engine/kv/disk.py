"""The disk under the KV store: immutable segment files, an index, and the thread that writes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.kv.segment import Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """What the index knows of one segment. `parent_key` is empty for the first of a conversation.

    `num_used` says how many of its tokens each owner's conversations go through.
    """

    key: bytes
    parent_key: bytes
    start: int
    token_ids: tuple[int, ...]
    is_canonical: bool
    num_used: Mapping[str, int]
    last_used: float
    num_bytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Written:
    """One segment is on the disk and in the index, or (`error`) it is not and will not be."""

    key: bytes
    error: str = ""
    """A sentence for the user, or empty."""


class Disk(Protocol):
    """Where segments outlive the process. Called by the engine thread; only `open`, `read` and
    `close` wait for the disk, everything else is done by the writer in the order given."""

    @property
    def num_bytes(self) -> int:
        """All that this tier takes on the disk, of every model, with the index."""
        ...

    @property
    def num_pending_bytes(self) -> int:
        """Blobs that wait to be written."""
        ...

    @property
    def num_bytes_written(self) -> int:
        """Since `open`: what has gone to the disk."""
        ...

    @property
    def namespace(self) -> bytes:
        """32 bytes that go into every key; they differ whenever KV is not interchangeable."""
        ...

    def open(self) -> Sequence[StoredSegment]:
        """What is there, parents before children. Leftovers of a killed process are removed.

        Raises HomeError with a sentence for the user when the folder cannot be used, is in use,
        or cannot be written. Then there is no disk; everything else works without one. Faults
        that come later are told by `poll`.
        """
        ...

    def write(self, segment: StoredSegment, blob: Blob) -> None:
        """Queue a segment; `poll` tells how it went. The blob must not change."""
        ...

    def update(self, segments: Iterable[StoredSegment]) -> None:
        """Queue changes of `parent_key`, `num_used` and `last_used`."""
        ...

    def remove(self, keys: Iterable[bytes]) -> None:
        """Queue the removal of files and rows; also of what still waits to be written."""
        ...

    def forget_elsewhere(self, is_gone: Callable[[str], bool]) -> None:
        """Queue the removal of other models' segments with words that only gone owners use."""
        ...

    def make_room(self, num_bytes: int) -> int:
        """Queue the removal of other models' segments, least recently used first; gives the bytes
        that this will free, which may be fewer."""
        ...

    def prefetch(self, keys: Sequence[bytes]) -> None:
        """These are read next, in this order: begin with what comes first. Nothing needs it;
        a new call takes the place of the one before."""
        ...

    def read(self, key: bytes) -> Blob | None:
        """The blob, checked against its checksum and its key. None: it is gone or damaged, and
        its removal is queued. Valid until the next but one `read`, or `close`."""
        ...

    def poll(self) -> list[Written]:
        """What has been written since the last call."""
        ...

    def close(self, seconds: float) -> None:
        """Finish what is queued, for at most so long, and end the writer. Harmless twice."""
        ...
