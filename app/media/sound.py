"""Sounds from people's files. Only the reading process runs this: see `reading.py`."""

import io
import wave
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from app.media.refusal import Refusal
from engine.media import SAMPLE_RATE

MOST_SECONDS = 30 * 60
"""Half an hour is 115 MB of samples, and more tokens than most contexts hold."""
FEWEST_SECONDS = 0.1
_FLOAT, _EXTENSIBLE = 3, 0xFFFE


def take_in(data: bytes) -> tuple[Mapping[str, object], bytes, bytes]:
    """The facts, and the sound as it is kept: one channel of 16 bits at `SAMPLE_RATE`. Raises
    Refusal."""
    samples, rate = _opened(data)
    count = round(len(samples) * SAMPLE_RATE / rate)
    if rate != SAMPLE_RATE:
        samples = _at_our_rate(samples, rate, count)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    facts = {"media_type": "audio/wav", "width": count, "height": 1}
    return facts, buffer.getvalue(), b""


def samples(data: bytes) -> bytes:
    """Of a sound as it is kept: float32. Raises Refusal."""
    return _opened(data)[0].astype(np.float32).tobytes()


def _opened(data: bytes) -> tuple[NDArray[np.float64], int]:
    """Of one channel, between -1 and 1, and how many a second."""
    try:
        form, channels, rate, width, frames = _parts(data)
    except (ValueError, IndexError) as error:
        raise Refusal(f"it is damaged ({error})") from error
    if not (1 <= channels <= 32 and 1000 <= rate <= 768_000):
        raise Refusal(f"it has {channels} channels at {rate:,} Hz, which no recording has")
    num_frames = len(frames) // (channels * width)
    seconds = num_frames / rate
    if not FEWEST_SECONDS <= seconds <= MOST_SECONDS:
        raise Refusal(
            f"it lasts {seconds:,.1f} seconds, and between {FEWEST_SECONDS} and {MOST_SECONDS:,}"
            " are taken"
        )
    raw = frames[: num_frames * channels * width]
    values = _numbers(raw, form, width).reshape(num_frames, channels).mean(axis=1)
    if not np.isfinite(values).all():
        raise Refusal("some of its samples are no numbers")
    return values, rate


def _parts(data: bytes) -> tuple[int, int, int, int, bytes]:
    """Of a WAV file: the kind of numbers, channels, rate, bytes of each number, and the numbers."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise Refusal("it is no WAV file; other sounds have to be converted to WAV first")
    form, place = None, 12
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        body = data[place + 8 : place + 8 + size]
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
            return kind, channels, int.from_bytes(form[4:8], "little"), width, body
        place += 8 + size + size % 2
    raise ValueError("the samples are missing")


def _numbers(raw: bytes, form: int, width: int) -> NDArray[np.float64]:
    if form == _FLOAT:
        return np.frombuffer(raw, f"<f{width}").astype(np.float64)
    if width == 1:
        return (np.frombuffer(raw, np.uint8).astype(np.float64) - 128) / 128
    if width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        return padded.view("<i4")[:, 0] / 2.0**31
    return np.frombuffer(raw, f"<i{width}") / 2.0 ** (8 * width - 1)


def _at_our_rate(values: NDArray[np.float64], rate: int, count: int) -> NDArray[np.float64]:
    """By straight lines, after an average over what falls on one new sample: that keeps most of
    what is too high for the new rate from coming back lower."""
    step = max(1, rate // SAMPLE_RATE)
    if step > 1:
        sums = np.cumsum(np.concatenate([[0.0], values, np.full(step, values[-1])]))
        values = (sums[step:] - sums[:-step])[: len(values)] / step
    between: NDArray[np.float64] = np.interp(
        np.arange(count) * (rate / SAMPLE_RATE), np.arange(len(values)), values
    )
    return between
