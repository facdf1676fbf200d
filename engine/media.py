"""Pictures and sounds in a prompt: runs of positions that are named by what is in them.

    prompt   12 7 804 | -19 -7731 -402 ... -88 | 15 9 2
                       ^ a chunk of a picture    ^ text goes on

A picture has no tokens, so each of its positions gets an id that follows from its content, below
all ids of a vocabulary. The same picture at the same place is then the same run of ids, and what
was computed of it is found again like that of any text: in cells, in memory, and on the disk.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
"""Of every sound here, in samples a second; what a model wants otherwise is made of it."""


class MediaKind(Enum):
    IMAGE = "image"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A picture or a sound. Two with the same `digest` are the same.

    `width` and `height` are pixels; a sound has `width` samples and a height of 1. `load` gives
    the pixels, three bytes each and row after row, or the samples as float32; it is called by
    another thread when they are needed, may take a while, and may raise an InglenookError.
    """

    kind: MediaKind
    digest: bytes
    width: int
    height: int
    load: Callable[[], bytes] = field(compare=False, repr=False)

    @property
    def num_bytes(self) -> int:
        """Of what `load` gives."""
        per_place = 3 if self.kind is MediaKind.IMAGE else 4
        return per_place * self.width * self.height


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSpan:
    """The positions [start, start + num_tokens) of a prompt hold chunk `chunk` of `media`.

    `is_whole`: its positions look at one another, so they are computed in one step.
    """

    start: int
    num_tokens: int
    media: Media
    chunk: int
    is_whole: bool = False

    @property
    def end(self) -> int:
        return self.start + self.num_tokens


def media_ids(digest: bytes, chunk: int, num_tokens: int) -> tuple[int, ...]:
    """The ids of a chunk, all below 0.

    All 31 bits of each follow from the content, so two contents differ at once or not at all.
    """
    seed = digest + chunk.to_bytes(4, "little") + num_tokens.to_bytes(4, "little")
    drawn = np.frombuffer(hashlib.shake_256(seed).digest(4 * num_tokens), "<i4")
    return tuple((drawn | np.int32(-(2**31))).tolist())


def first_media_id(token_ids: Sequence[int]) -> int | None:
    """Where the first id that stands for no token is; None: all are tokens."""
    return next((place for place, each in enumerate(token_ids) if each < 0), None)


def resampled(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Samples at `SAMPLE_RATE` as a model wants them, by straight lines between them."""
    if rate == SAMPLE_RATE or not len(samples):
        return samples
    wanted = np.arange(num_resampled(len(samples), rate)) * (SAMPLE_RATE / rate)
    between: NDArray[np.float64] = np.interp(wanted, np.arange(len(samples)), samples)
    return between.astype(np.float32)


def num_resampled(num_samples: int, rate: int) -> int:
    return -(-num_samples * rate // SAMPLE_RATE)
