"""Sounds from people's files. Only the reading process runs this: see `reading.py`.

A file of half an hour has hundreds of megabytes, so only what is kept is ever had at once:

    the file    |.......|.......|.......|   a view of it; some numbers are read at a time
    what falls  |-----^ |-----^ |-----^     averaged, then straight lines between
    is kept     |...|...|...|               made in its full length, filled block by block
"""

import io
import wave
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.media.refusal import Refusal
from engine.media import SAMPLE_RATE

MOST_SECONDS = 30 * 60
"""Half an hour is 115 MB of samples, and more tokens than most contexts hold."""
FEWEST_SECONDS = 0.1
BLOCK = 1_000_000
"""So many numbers of the file are read at a time."""
_FLOAT, _EXTENSIBLE = 3, 0xFFFE


def take_in(data: bytes) -> tuple[Mapping[str, object], bytes, bytes]:
    """The facts, and the sound as it is kept: one channel of 16 bits at `SAMPLE_RATE`. Raises
    Refusal."""
    recording = _opened(data)
    kept = np.empty(recording.num_kept, "<i2")
    for first, block in _at_our_rate(recording):
        kept[first : first + len(block)] = np.round(np.clip(block, -1, 1) * 32767)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(kept.data)
    facts = {"media_type": "audio/wav", "width": len(kept), "height": 1}
    return facts, buffer.getvalue(), b""


def samples(data: bytes) -> bytes:
    """Of a sound as it is kept: float32. Raises Refusal."""
    recording = _opened(data)
    opened = np.empty(recording.num_kept, np.float32)
    for first, block in _at_our_rate(recording):
        opened[first : first + len(block)] = block
    return opened.tobytes()


@dataclass(frozen=True, slots=True)
class Recording:
    """The sound of a file, not read yet: `form` is the kind of its numbers, `width` the bytes of
    each, `rate` how many a second each of the channels has."""

    form: int
    channels: int
    rate: int
    width: int
    frames: memoryview

    @property
    def num_frames(self) -> int:
        return len(self.frames) // (self.channels * self.width)

    @property
    def num_kept(self) -> int:
        """Samples at our rate."""
        return round(self.num_frames * SAMPLE_RATE / self.rate)

    def read(self, first: int, end: int) -> NDArray[np.float64]:
        """The frames from `first` on, as one channel between -1 and 1. Raises Refusal."""
        size = self.channels * self.width
        values = _numbers(self.frames[first * size : end * size], self.form, self.width)
        mean: NDArray[np.float64] = values.reshape(-1, self.channels).mean(axis=1)
        if not np.isfinite(mean).all():
            raise Refusal("some of its samples are no numbers")
        return mean


def _opened(data: bytes) -> Recording:
    """Raises Refusal."""
    try:
        recording = _recording(data)
    except (ValueError, IndexError) as error:
        raise Refusal(f"it is damaged ({error})") from error
    channels, rate = recording.channels, recording.rate
    if not (1 <= channels <= 32 and 1000 <= rate <= 768_000):
        raise Refusal(f"it has {channels} channels at {rate:,} Hz, which no recording has")
    seconds = recording.num_frames / rate
    if not FEWEST_SECONDS <= seconds <= MOST_SECONDS:
        raise Refusal(
            f"it lasts {seconds:,.1f} seconds, and between {FEWEST_SECONDS} and {MOST_SECONDS:,}"
            " are taken"
        )
    return recording


def _recording(data: bytes) -> Recording:
    """Of a WAV file. Raises ValueError, IndexError or Refusal."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise Refusal("it is no WAV file; other sounds have to be converted to WAV first")
    whole, form, place = memoryview(data), None, 12
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        body = whole[place + 8 : place + 8 + size]
        if name == b"fmt ":
            form = body
        elif name == b"data" and form is not None and len(form) >= 16:
            kind = int.from_bytes(form[:2], "little")
            if kind == _EXTENSIBLE and len(form) >= 26:
                kind = int.from_bytes(form[24:26], "little")
            width = int.from_bytes(form[14:16], "little") // 8
            if kind not in (1, _FLOAT) or width not in ((4, 8) if kind == _FLOAT else (1, 2, 3, 4)):
                raise Refusal("its samples are packed in a way that is not read; convert it to PCM")
            channels = int.from_bytes(form[2:4], "little")
            rate = int.from_bytes(form[4:8], "little")
            return Recording(kind, channels, rate, width, body)
        place += 8 + size + size % 2
    raise ValueError("the samples are missing")


def _numbers(raw: memoryview, form: int, width: int) -> NDArray[np.float64]:
    if form == _FLOAT:
        return np.frombuffer(raw, f"<f{width}").astype(np.float64)
    if width == 1:
        return (np.frombuffer(raw, np.uint8).astype(np.float64) - 128) / 128
    if width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        return padded.view("<i4")[:, 0] / 2.0**31
    return np.frombuffer(raw, f"<i{width}") / 2.0 ** (8 * width - 1)


def _at_our_rate(recording: Recording) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Blocks of samples, each with the place of its first one. By straight lines, after an average
    over what falls on one new sample: that keeps most of what is too high for the new rate from
    coming back lower."""
    ratio = recording.rate / SAMPLE_RATE
    step = max(1, recording.rate // SAMPLE_RATE)
    size = max(1, int(BLOCK / (ratio * recording.channels)))
    for start in range(0, recording.num_kept, size):
        places = np.arange(start, min(start + size, recording.num_kept)) * ratio
        # [first, end)             what the lines are drawn between
        # [first, end + step - 1)  what the averages of these are made of
        first = int(places[0])
        end = min(int(places[-1]) + 2, recording.num_frames)
        values = recording.read(first, min(end + step - 1, recording.num_frames))
        if step > 1:
            # After the end it goes on with its last sample.
            missing = end - first + step - 1 - len(values)
            sums = np.cumsum(np.concatenate([[0.0], values, np.full(missing, values[-1])]))
            values = (sums[step:] - sums[:-step]) / step
        between: NDArray[np.float64] = np.interp(places, np.arange(first, end), values)
        yield start, between
