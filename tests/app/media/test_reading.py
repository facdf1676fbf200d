"""People's pictures and sounds, read by a process that may die."""

import io
import json
import struct
import sys
import wave
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.media import reading
from app.media.attachment import attachment_from
from app.media.picture import LONGEST_SIDE, MOST_PIXELS
from app.media.reading import open_kept, take_in
from engine.errors import UsageError
from engine.media import SAMPLE_RATE, MediaKind

IMAGE, AUDIO = MediaKind.IMAGE, MediaKind.AUDIO


def encoded(picture: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def halves(width: int = 40, height: int = 20) -> Image.Image:
    """The left half red, the right half blue."""
    picture = Image.new("RGB", (width, height), "blue")
    picture.paste("red", (0, 0, width // 2, height))
    return picture


def colours(data: bytes, name: str = "a picture") -> np.ndarray:
    taken = take_in(data, IMAGE, name)
    pixels = np.frombuffer(open_kept(taken.kept, IMAGE), np.uint8)
    return pixels.reshape(taken.height, taken.width, 3)


def recorded(rate: int = SAMPLE_RATE, seconds: float = 0.5, channels: int = 1) -> bytes:
    tone = np.sin(np.arange(int(rate * seconds)) * 2 * np.pi * 440 / rate)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(tone * 20000, channels).astype("<i2").tobytes())
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_each_usual_format_is_read(form: str) -> None:
    seen = colours(encoded(halves(), form)).astype(int)
    assert seen.shape == (20, 40, 3)
    np.testing.assert_allclose(seen[10, 5], (255, 0, 0), atol=40)
    np.testing.assert_allclose(seen[10, 35], (0, 0, 255), atol=40)


def test_a_photograph_stands_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the left by whoever held the camera
    seen = colours(encoded(halves(), "JPEG", exif=exif, quality=95)).astype(int)
    assert seen.shape == (40, 20, 3)
    np.testing.assert_allclose(seen[5, 10], (255, 0, 0), atol=40)


def test_what_a_camera_wrote_beside_a_photograph_is_not_kept() -> None:
    exif = Image.Exif()
    exif[0x010F] = "Maker of cameras"
    taken = take_in(encoded(halves(), "JPEG", exif=exif), IMAGE, "photo.jpg")
    assert b"Maker" not in taken.kept and b"Maker" not in taken.preview


def test_the_first_picture_of_a_moving_one_counts() -> None:
    moving = encoded(halves(), "GIF", save_all=True, append_images=[Image.new("RGB", (40, 20))])
    np.testing.assert_allclose(colours(moving)[10, 5], (255, 0, 0), atol=40)


@pytest.mark.parametrize("mode", ["L", "P", "LA", "RGBA", "CMYK", "1", "I;16"])
def test_every_way_to_write_colours_becomes_three(mode: str) -> None:
    form = "JPEG" if mode == "CMYK" else "PNG"
    data = encoded(Image.new(mode, (30, 30)), form)
    assert colours(data).shape == (30, 30, 3)


def test_what_can_be_seen_through_stands_on_white() -> None:
    assert colours(encoded(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG")).min() == 255


def test_a_large_picture_is_made_smaller_and_has_a_preview() -> None:
    taken = take_in(encoded(Image.new("RGB", (3 * LONGEST_SIDE, 900)), "PNG"), IMAGE, "wide.png")
    assert (taken.width, taken.height) == (LONGEST_SIDE, 300)
    assert max(Image.open(io.BytesIO(taken.preview)).size) == 512


def test_a_picture_that_would_fill_the_memory_is_refused_by_its_header() -> None:
    side = 30_000
    header = struct.pack(">II5B", side, side, 8, 2, 0, 0, 0)

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    with pytest.raises(UsageError, match=f"900,000,000|{MOST_PIXELS:,}"):
        take_in(bomb, IMAGE, "bomb.png")


def test_damaged_and_foreign_files_are_refused_in_a_sentence() -> None:
    good = encoded(halves(400, 300), "PNG")
    for data in (good[: len(good) // 2], b"", b"GIF89a", b"%PDF-1.7", bytes(1000), b"<svg/>"):
        with pytest.raises(UsageError, match=r"^notes\.png cannot be used, because it is "):
            take_in(data, IMAGE, "notes.png")
    with pytest.raises(UsageError, match="no shape"):
        take_in(encoded(Image.new("L", (1000, 2)), "PNG"), IMAGE, "line.png")


@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (44_100, 2), (8_000, 1), (48_000, 6)])
def test_a_sound_becomes_one_channel_at_our_rate(rate: int, channels: int) -> None:
    taken = take_in(recorded(rate, channels=channels), AUDIO, "tone.wav")
    samples = np.frombuffer(open_kept(taken.kept, AUDIO), np.float32)
    assert len(samples) == taken.width == SAMPLE_RATE // 2
    loudest = np.abs(np.fft.rfft(samples)).argmax() * SAMPLE_RATE / len(samples)
    assert abs(loudest - 440) < 5
    assert 0.5 < np.abs(samples).max() < 0.7


@pytest.mark.parametrize(("kind", "form"), [(1, "u1"), (1, "<i4"), (3, "<f4")])
def test_samples_of_every_size_are_read(kind: int, form: str) -> None:
    wave_ = np.sin(np.arange(8000) / 5)
    values = wave_ * 127 + 128 if form == "u1" else wave_ * (2**31 - 1) if kind == 1 else wave_
    body = values.astype(form).tobytes()
    width = np.dtype(form).itemsize
    head = struct.pack("<HHIIHH", kind, 1, 16000, 16000 * width, width, 8 * width)
    data = b"fmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(body)) + body
    taken = take_in(b"RIFF" + struct.pack("<I", len(data) + 4) + b"WAVE" + data, AUDIO, "a.wav")
    samples = np.frombuffer(open_kept(taken.kept, AUDIO), np.float32)
    np.testing.assert_allclose(samples, wave_, atol=0.02)


def test_sounds_that_cannot_be_read_are_refused_in_a_sentence() -> None:
    for data, reason in (
        (b"ID3" + bytes(400), "no WAV file"),
        (b"RIFF\0\0\0\0WAVEfmt ", "damaged"),
        (recorded(seconds=0.01), "lasts 0.0 seconds"),
    ):
        with pytest.raises(UsageError, match=reason):
            take_in(data, AUDIO, "talk.mp3")


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    with pytest.raises(UsageError, match="cat.png"):
        attachment_from(path)
    path.write_bytes(encoded(halves(), "PNG"))
    taken = attachment_from(path)
    assert (taken.kind, taken.width, taken.height, taken.name) == (IMAGE, 40, 20, "cat.png")
    assert len(taken.media.load()) == 3 * 40 * 20
    assert taken.media == attachment_from(path).media


FACTS = {"media_type": "image/png", "width": 4, "height": 2, "kept": 3, "preview": 1}


def captured(monkeypatch: pytest.MonkeyPatch, head: str, body: str = "abcd") -> None:
    """Let another program read, which says this."""
    code = f"import os, sys; sys.stdin.buffer.read(); print({head}); print({body!r}, end='')"
    monkeypatch.setattr(reading, "own_command", lambda: (sys.executable, "-S", "-c", code))


def test_what_the_process_says_rightly_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    captured(monkeypatch, repr(json.dumps(FACTS)))
    taken = take_in(b"data", IMAGE, "cat.png")
    assert (taken.kept, taken.preview, taken.width, taken.height) == (b"abc", b"d", 4, 2)


@pytest.mark.parametrize(
    "said",
    [
        [1],
        "words",
        {},
        {**FACTS, "kept": -1, "preview": 5},
        {**FACTS, "kept": 3.0},
        {**FACTS, "preview": True},
        {**FACTS, "width": 0},
        {**FACTS, "height": "2"},
        {**FACTS, "width": 100_000, "height": 1_001},
        {**FACTS, "media_type": "text/html"},
        {**FACTS, "media_type": "audio/wav"},
        {**FACTS, "media_type": ["image/png"]},
    ],
    ids=str,
)
def test_what_a_captured_process_says_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, said: object
) -> None:
    captured(monkeypatch, repr(json.dumps(said)))
    with pytest.raises(UsageError, match=r"^cat\.png made the program .* makes no sense"):
        take_in(b"data", IMAGE, "cat.png")


def test_an_answer_without_an_end_is_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captured(monkeypatch, "'[' * 200_000")
    with pytest.raises(UsageError, match="ended the program that reads it"):
        take_in(b"data", IMAGE, "cat.png")


def test_the_process_knows_nothing_of_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGLENOOK_API_KEY", "secret")
    names = "[name for name in os.environ if name.startswith('INGLENOOK')]"
    captured(monkeypatch, f"'{{\"refusal\": \"' + str({names}) + '\"}}'")
    with pytest.raises(UsageError, match=r"because \[\]"):
        take_in(b"data", IMAGE, "cat.png")
