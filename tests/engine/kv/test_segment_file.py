"""One file of the disk tier: what was written is read, and nothing else is."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.kv.segment_file import (
    ALIGNMENT,
    PART_SUFFIX,
    decode_file,
    decode_header,
    encode_header,
    read_header,
    write_file,
)
from tests.engine.kv.stored import NAMESPACE, OTHER_NAMESPACE, blob_of, key_of, stored


def whole(number: int, num_bytes: int = 5000) -> bytes:
    segment = stored(number, num_bytes)
    return encode_header(NAMESPACE, segment) + blob_of(number, num_bytes).tobytes()


def accepted(data: bytes, number: int) -> bool:
    array = np.frombuffer(data, np.uint8)
    return decode_file(array, NAMESPACE, key_of(number)) is not None


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_a_header_says_all_that_was_stored_but_the_last_use(number: int) -> None:
    header = decode_header(encode_header(NAMESPACE, stored(number)))
    assert header is not None
    assert header.segment == replace(stored(number), last_used=0.0)
    assert header.namespace == NAMESPACE


def test_a_header_longer_than_one_reading_is_read(home: Path) -> None:
    long = replace(stored(1), token_ids=tuple(range(40_000)))
    write_file(home / "x", encode_header(NAMESPACE, long), blob_of(1))
    header = read_header(home / "x")
    assert header is not None and header.segment.token_ids == long.token_ids


@pytest.mark.parametrize("num_tokens", [0, 1, 15, 16, 255])
def test_the_payload_begins_where_memory_is_aligned(num_tokens: int) -> None:
    header = encode_header(NAMESPACE, replace(stored(1), token_ids=tuple(range(num_tokens))))
    assert len(header) % ALIGNMENT == 0


def test_the_payload_is_a_view_of_what_was_read() -> None:
    data = np.frombuffer(whole(3), np.uint8)
    payload = decode_file(data, NAMESPACE, key_of(3))
    assert payload is not None and np.shares_memory(payload, data)
    assert np.array_equal(payload, blob_of(3))


def test_a_file_of_another_model_or_another_segment_is_not_taken() -> None:
    data = np.frombuffer(whole(3), np.uint8)
    assert decode_file(data, OTHER_NAMESPACE, key_of(3)) is None
    assert decode_file(data, NAMESPACE, key_of(2)) is None


def mutated(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """What a bad block, a torn write or a mixed-up folder makes of a file."""
    changed = bytearray(data)
    place = int(rng.integers(len(data)))
    header_place = int(rng.integers(512))
    match int(rng.integers(8)):
        case 0:
            changed[place] ^= 1 << int(rng.integers(8))
        case 1:
            changed[header_place] ^= 1 << int(rng.integers(8))
        case 2:
            changed[header_place] = int(rng.integers(256))
        case 3:
            del changed[place:]
        case 4:
            changed += rng.integers(0, 256, int(rng.integers(1, 300)), np.uint8).tobytes()
        case 5:
            changed[place : place + 512] = bytes(len(changed[place : place + 512]))
        case 6:
            changed[place:] = other[place:]
        case 7:
            changed[:place] = other[:place]
    return bytes(changed)


@pytest.mark.parametrize("count", [1_500, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_no_file_that_was_changed_is_taken(count: int) -> None:
    rng = np.random.default_rng(7)
    data, other = whole(1), whole(6)
    num_changed = 0
    for _ in range(count):
        changed = mutated(data, other, rng)
        if changed not in (data, other):
            num_changed += 1
            assert not accepted(changed, 1)
    assert accepted(data, 1)
    assert num_changed > count * 0.9


def test_headers_of_changed_files_are_refused_on_the_disk_too(home: Path) -> None:
    rng = np.random.default_rng(8)
    data, other = whole(1), whole(6)
    path = home / "x"
    for _ in range(300):
        changed = mutated(data, other, rng)
        path.write_bytes(changed)
        header = read_header(path)
        if header is not None:
            # The payload is not looked at, so the header must be one that was written, whole.
            assert changed.startswith((data[: header.num_bytes], other[: header.num_bytes]))
            assert len(changed) == header.num_file_bytes


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_this_user_may_read_a_file(home: Path) -> None:
    write_file(home / "x.kv", encode_header(NAMESPACE, stored(1)), blob_of(1))
    assert stat.S_IMODE((home / "x.kv").stat().st_mode) == 0o600


def test_a_disk_that_is_full_leaves_nothing(home: Path) -> None:
    resource = pytest.importorskip("resource")
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(OSError):
            write_file(home / "x.kv", encode_header(NAMESPACE, stored(1)), blob_of(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(home.iterdir()) == []
    assert not (home / f"x{PART_SUFFIX}").exists()
