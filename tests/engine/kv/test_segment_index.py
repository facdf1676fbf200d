"""The index: it gives what was put, keeps nothing of what was deleted, and is never believed
when it is damaged."""

import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.kv import segment_index
from engine.kv.disk import StoredSegment
from engine.kv.segment_index import IndexDamaged, SegmentIndex, index_files, open_index
from tests.engine.kv.stored import NAMESPACE, OTHER_NAMESPACE, key_of, number_of, stored


@pytest.fixture
def path(home: Path) -> Path:
    return home / "index.sqlite3"


@pytest.fixture
def index(path: Path) -> Iterator[SegmentIndex]:
    index = SegmentIndex(path)
    yield index
    index.close()


def fill(index: SegmentIndex, count: int) -> None:
    for number in range(1, count + 1):
        index.put(NAMESPACE, stored(number), 6000)
    index.commit()


def segments(index: SegmentIndex, namespace: bytes = NAMESPACE) -> dict[int, StoredSegment]:
    return {number_of(each.key): each for each in index.segments(namespace)}


def test_a_segment_comes_back_as_it_was(index: SegmentIndex) -> None:
    highest = replace(stored(2), checksum=2**64 - 1)
    index.put(NAMESPACE, stored(1), 6000)
    index.put(NAMESPACE, highest, 7000)
    assert segments(index) == {1: stored(1), 2: highest}
    assert segments(index, OTHER_NAMESPACE) == {}


def test_what_changes_of_a_segment_is_noted_and_nothing_else(index: SegmentIndex) -> None:
    fill(index, 2)
    changed = replace(stored(2), parent_key=key_of(9), num_used={"b": 1}, last_used=5.0)
    index.update(NAMESPACE, [replace(changed, start=99), stored(3)])
    with pytest.raises(StopIteration):
        # The place of a segment cannot change, so a row that says so is not believed.
        next(each for each in index.segments(NAMESPACE) if number_of(each.key) == 2)
    index.update(NAMESPACE, [changed])
    assert segments(index) == {1: stored(1), 2: changed}


def test_files_are_listed_by_their_last_use(index: SegmentIndex) -> None:
    fill(index, 3)
    index.update(NAMESPACE, [replace(stored(1), last_used=2e9)])
    index.put(OTHER_NAMESPACE, replace(stored(1), last_used=0.0), 6000)
    listed = [(each.namespace, number_of(each.key)) for each in index.files()]
    assert listed == [(OTHER_NAMESPACE, 1), (NAMESPACE, 2), (NAMESPACE, 3), (NAMESPACE, 1)]


def test_nothing_of_what_was_deleted_is_left_in_its_files(index: SegmentIndex, path: Path) -> None:
    fill(index, 400)
    rng = np.random.default_rng(3)
    order = rng.permutation(np.arange(1, 401)).tolist()
    kept, deleted = set(order[:100]), order[100:]
    for part in np.array_split(np.array(deleted), 7):
        index.delete((NAMESPACE, key_of(number)) for number in part.tolist())
        index.commit()
        index.scrub()
    held = b"".join(file.read_bytes() for file in index_files(path) if file.exists())
    for number in deleted:
        tokens = np.array(stored(number).token_ids, "<i4").tobytes()
        assert not any(tokens[at : at + 12] in held for at in range(0, len(tokens) - 12, 4))
    assert all(np.array(stored(n).token_ids, "<i4").tobytes() in held for n in kept)


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_this_user_may_read_it(index: SegmentIndex, path: Path) -> None:
    fill(index, 1)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in index_files(path) if file.exists()}
    assert modes == {0o600}


def test_a_second_user_is_refused(
    index: SegmentIndex, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_index, "BUSY_SECONDS", 0.05)
    with pytest.raises(OSError) as refusal:
        SegmentIndex(path)
    assert refusal.value.errno == errno.EBUSY
    fill(index, 1)


def close_filled(path: Path, count: int = 50) -> None:
    index = SegmentIndex(path)
    fill(index, count)
    index.close()


def another_version(path: Path) -> None:
    close_filled(path)
    with sqlite3.connect(path) as db:
        db.execute("pragma user_version = 99")
    db.close()


def other_tables(path: Path) -> None:
    close_filled(path)
    with sqlite3.connect(path) as db:
        db.execute("alter table segment rename column token_ids to tokens")
    db.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)


def half(path: Path) -> None:
    close_filled(path, 200)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


DAMAGES = [another_version, other_tables, no_database, half]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_one_is_refused_and_replaced(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    with pytest.raises(IndexDamaged):
        SegmentIndex(path)
    index = open_index(path)
    assert index.files() == []
    fill(index, 3)
    index.close()


@pytest.mark.parametrize("count", [150, pytest.param(3_000, marks=pytest.mark.nightly)])
def test_no_flipped_bits_make_it_say_what_was_not_put(path: Path, count: int) -> None:
    close_filled(path)
    sound = path.read_bytes()
    rng = np.random.default_rng(5)
    num_refused = 0
    for _ in range(count):
        changed = bytearray(sound)
        for _ in range(int(rng.integers(1, 4))):
            changed[int(rng.integers(len(sound)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            index = SegmentIndex(path)
        except IndexDamaged:
            num_refused += 1
            continue
        try:
            found = segments(index)
            rows = index.files()
        except IndexDamaged:
            num_refused += 1
            continue
        finally:
            index.close()
        # A namespace or a key that is read wrongly leads to no file, and the rest is checked.
        assert all(len(row.key) == 16 and len(row.namespace) == 32 for row in rows)
        assert all(found[number] == stored(number) for number in found)
    assert 0 < num_refused < count
