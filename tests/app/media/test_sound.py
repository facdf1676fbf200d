"""Sounds are read piece by piece, and are what they would be if they were read at once."""

import io
import struct
import tracemalloc
import wave

import numpy as np
import pytest
from numpy.typing import NDArray

from app.media import sound
from app.media.reading import open_kept, take_in
from app.media.refusal import Refusal
from engine.media import SAMPLE_RATE, MediaKind

CD = 44_100


def wav(values: NDArray[np.float64], rate: int, form: str = "<i2") -> bytes:
    """A file of numbers between -1 and 1: [num_frames, num_channels]."""
    num_frames, channels = values.shape
    kind, width = (3, int(form[-1])) if "f" in form else (1, int(form[-1]))
    if kind == 3:
        body = values.astype(form).tobytes()
    elif form == "u1":
        body = np.round(values * 127 + 128).astype(np.uint8).tobytes()
    elif width == 3:
        whole = np.round(values * (2**23 - 1)).astype("<i4").reshape(-1, 1).view(np.uint8)
        body = whole[:, :3].tobytes()
    else:
        body = np.round(values * (2.0 ** (8 * width - 1) - 1)).astype(form).tobytes()
    size = width * channels
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * size, size, 8 * width)
    data = b"fmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WAVE" + data


def at_once(values: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """The same sound at our rate, computed from all of its mean at a time."""
    mean = values.mean(axis=1)
    step = max(1, rate // SAMPLE_RATE)
    padded = np.concatenate([mean, np.full(step - 1, mean[-1])])
    averaged = np.lib.stride_tricks.sliding_window_view(padded, step).mean(axis=1)
    places = np.arange(round(len(mean) * SAMPLE_RATE / rate)) * (rate / SAMPLE_RATE)
    return np.interp(places, np.arange(len(mean)), averaged)


@pytest.mark.parametrize("block", [1, 777, 10**9])
@pytest.mark.parametrize("rate", [1_000, 8_000, 16_000, 22_050, CD, 48_000, 96_000, 768_000])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_blocks_of_any_size_make_the_same_sound(
    block: int, rate: int, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_frames = max(rate // 10, 500) + 1
    values = np.random.default_rng(rate + channels).uniform(-1, 1, (num_frames, channels))
    exact = at_once(values, rate)
    monkeypatch.setattr(sound, "BLOCK", block)
    opened = np.frombuffer(sound.samples(wav(values, rate, "<f8")), np.float32)
    assert len(opened) == len(exact)
    np.testing.assert_allclose(opened, exact, rtol=0, atol=6e-8)
    facts, kept, _ = sound.take_in(wav(values, rate, "<f8"))
    with wave.open(io.BytesIO(kept)) as file:
        steps = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert facts["width"] == len(steps) == len(exact)
    assert np.abs(steps - exact * 32767).max() <= 0.5 + 1e-6


@pytest.mark.parametrize(("form", "unit"), [("u1", 2**-6), ("<i2", 2**-14), ("<i3", 2**-22)])
def test_numbers_of_every_size_are_read_in_blocks(
    form: str, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(7).uniform(-1, 1, (5_000, 2))
    monkeypatch.setattr(sound, "BLOCK", 777)
    opened = np.frombuffer(sound.samples(wav(values, CD, form)), np.float32)
    np.testing.assert_allclose(opened, at_once(values, CD), rtol=0, atol=unit)


def test_what_is_no_number_is_refused_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "BLOCK", 777)
    values = np.zeros((8_000, 2))
    values[6_543, 1] = np.nan
    with pytest.raises(Refusal, match="no numbers"):
        sound.take_in(wav(values, CD, "<f4"))


def test_a_long_sound_takes_little_more_memory_than_what_is_kept_of_it() -> None:
    data = wav(np.zeros((120 * CD, 2)), CD)
    tracemalloc.start()
    try:
        _, kept, _ = sound.take_in(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The samples, the file they are written into, its bytes; and a block of the reading.
    assert peak < 3 * len(kept) + 40 * sound.BLOCK


@pytest.mark.nightly
def test_half_an_hour_of_a_cd_is_read_with_the_memory_that_is_allowed() -> None:
    num_frames = 29 * 60 * CD
    body = np.random.default_rng(1).integers(-9_000, 9_000, 2 * num_frames, np.int16).tobytes()
    data = wav(np.zeros((1, 2)), CD)[:-8] + struct.pack("<I", len(body)) + body
    taken = take_in(data, MediaKind.AUDIO, "concert.wav")
    assert taken.width == 29 * 60 * SAMPLE_RATE
    assert len(open_kept(taken.kept, MediaKind.AUDIO)) == 4 * taken.width
