"""A stored piece of a token prefix: its place among the others, and where its KV lies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

SEGMENT_TOKENS = 256
"""A segment ends at the next multiple of this; the end of a conversation may come sooner."""

KEY_BYTES = 16

Blob = NDArray[np.uint8]
"""KV of a range of tokens as a backend gave it; only that backend can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belonging:
    """Whose words some tokens are. With an owner and `is_durable` their KV may reach the disk.

    The first `num_source_tokens` of them are those of `source` alone, if there is one: a document,
    say, which several owners read. They stay when an owner goes, and take with them what was said
    about them when the source goes.
    """

    owner: str = ""
    is_durable: bool = False
    source: str = ""
    num_source_tokens: int = 0

    def uses(self, start: int, end: int) -> dict[str, int]:
        """By their names, how many of the tokens [start, end) of a prompt each user goes through,
        from `start` on."""
        if not self.source:
            return {self.owner: end - start}
        num_source = min(end, self.num_source_tokens) - start
        uses = {self.source: num_source} if num_source > 0 else {}
        if end > self.num_source_tokens:
            uses[self.source + WITH + self.owner] = end - start
        return uses

    def names(self, one: str) -> bool:
        """Whether these tokens go when that one goes."""
        return bool(one) and one in (self.owner, self.source)


WITH = "+"
"""Between the names of two users both of whom must be there: a source, and who reads it."""
NOBODY = Belonging()


def users_of(name: str) -> list[str]:
    """Those who must all be there, by a name of `Belonging.uses`."""
    return name.split(WITH)


class Kind(NamedTuple):
    """What a segment may be used for."""

    is_canonical: bool
    """It was computed alone and in pieces on a fixed grid: reading it again gives the same bits."""
    is_durable: bool
    """It may be written to the disk."""


ORDINARY = Kind(is_canonical=False, is_durable=False)


@dataclass(slots=True, eq=False)
class Segment:
    """Owned by the engine thread. Only its index links it, and only the store changes the rest.

    # [0, start)    the tokens before it, which its ancestors hold
    # [start, end)  its own
    """

    parent: "Segment | None"
    start: int
    token_ids: tuple[int, ...]
    children: "dict[tuple[int, int], Segment]" = field(default_factory=dict)
    """By the place where each begins and its first token."""
    num_used: dict[str, int] = field(default_factory=dict)
    """How many of its own tokens each user goes through: an owner's conversations, a source, or an
    owner who reads a source (`Belonging.uses`)."""
    kind: Kind = ORDINARY
    last_used: float = 0.0
    """Seconds since the epoch."""
    blob: Blob | None = None
    num_bytes: int = 0
    checksum: int = 0
    key: bytes = b""
    """Its name on the disk; empty while it has none."""
    is_on_disk: bool = False

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)

    def path(self) -> "list[Segment]":
        """From the first token of the conversation to this segment."""
        path: list[Segment] = []
        segment: Segment | None = self
        while segment is not None:
            path.append(segment)
            segment = segment.parent
        return path[::-1]

    def prefix(self) -> list[int]:
        """All tokens from the first of the conversation to the last of this segment."""
        token_ids: list[int] = []
        for segment in self.path():
            # A parent may go on beyond the place where its child begins.
            del token_ids[segment.start :]
            token_ids.extend(segment.token_ids)
        return token_ids


def segment_key(namespace: bytes, prefix: Sequence[int], start: int, is_canonical: bool) -> bytes:
    """The name of the segment [start, len(prefix)) after exactly these tokens.

    It covers all that its KV depends on: the namespace, every token from the first on, and the
    way it was computed. A hash of a segment's own tokens alone would give a conversation the KV
    of another one that says the same after a different beginning.
    """
    digest = blake2b(digest_size=KEY_BYTES, key=namespace)
    digest.update(np.array([start, len(prefix), is_canonical], np.int64).tobytes())
    digest.update(np.asarray(prefix, np.int32).tobytes())
    return digest.digest()


def checksum_of(blob: Blob) -> int:
    """XXH3 with 64 bits: it runs at memory speed, and guards against damage, not against malice."""
    return int(xxh3_64_intdigest(blob.data))
