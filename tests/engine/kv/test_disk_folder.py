"""The disk tier: what is there is right, what was removed is gone, and every fault is told."""

import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import HomeError
from engine.kv import disk_inventory, disk_writer, segment_index
from engine.kv.disk import Disk, Written
from engine.kv.disk_folder import INDEX_NAME, DiskFolder
from engine.kv.segment import Blob
from engine.kv.segment_file import SUFFIX, namespace_folder, segment_path
from engine.kv.segment_index import SegmentIndex, index_files
from tests.engine.kv.stored import (
    NAMESPACE,
    NUM_TOKENS,
    OTHER_NAMESPACE,
    blob_of,
    files_in,
    key_of,
    num_bytes_in,
    number_of,
    settle,
    stored,
    wait_until,
    write,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(home: Path) -> Path:
    return home / "kv"


@pytest.fixture
def disk(folder: Path) -> Iterator[DiskFolder]:
    disk = DiskFolder(folder, NAMESPACE)
    disk.open()
    yield disk
    disk.close(5)


def reopened(folder: Path, namespace: bytes = NAMESPACE) -> list[int]:
    """What a next start finds, in its order; every one of it must be right."""
    disk = DiskFolder(folder, namespace)
    numbers: list[int] = []
    try:
        for segment in disk.open():
            number = number_of(segment.key)
            wanted = stored(number)
            last_used = segment.last_used
            assert segment == replace(wanted, last_used=last_used)
            assert number <= 1 or number // 2 in numbers
            assert np.array_equal(disk.read(segment.key), blob_of(number))
            numbers.append(number)
    finally:
        disk.close(5)
    return numbers


def place(folder: Path, number: int, namespace: bytes = NAMESPACE) -> Path:
    return segment_path(folder, namespace, key_of(number))


def test_it_is_a_disk(disk: DiskFolder) -> None:
    held: Disk = disk
    assert held.namespace == NAMESPACE


def test_what_was_written_is_read_now_and_after_a_restart(disk: DiskFolder, folder: Path) -> None:
    assert write(disk, 1, 2, 3, 6) == [Written(key_of(number)) for number in (1, 2, 3, 6)]
    for number in (6, 3, 1, 2):
        assert np.array_equal(disk.read(key_of(number)), blob_of(number))
    assert disk.num_bytes_written == sum(place(folder, n).stat().st_size for n in (1, 2, 3, 6))
    disk.close(5)
    disk.close(5)
    assert sorted(reopened(folder)) == [1, 2, 3, 6]


def test_parents_come_before_children(disk: DiskFolder, folder: Path) -> None:
    numbers = [*range(1, 60), 0]
    write(disk, *numbers)
    # Reading `reopened` checks the order; the last uses are the other way round.
    disk.update([replace(stored(number), last_used=1e9 - number) for number in numbers])
    disk.close(5)
    assert set(reopened(folder)) == set(numbers)


def test_a_good_index_is_believed_and_no_file_is_opened(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 1, 2)
    disk.update([replace(stored(2), num_used={"b": 1}, last_used=3e9)])
    disk.close(5)
    monkeypatch.setattr(disk_inventory, "read_header", pytest.fail)
    again = DiskFolder(folder, NAMESPACE)
    assert list(again.open()) == [
        stored(1),
        replace(stored(2), num_used={"b": 1}, last_used=3e9),
    ]
    again.close(5)


def test_a_blob_is_valid_until_the_next_but_one_read(disk: DiskFolder) -> None:
    write(disk, 1, 2, 3)
    # The longest first, so that its buffer serves the others.
    first = disk.read(key_of(3))
    second = disk.read(key_of(2))
    assert np.array_equal(first, blob_of(3)) and np.array_equal(second, blob_of(2))
    third = disk.read(key_of(1))
    assert np.array_equal(second, blob_of(2)) and np.array_equal(third, blob_of(1))
    assert np.shares_memory(first, third)
    assert third is not None and third.ctypes.data % 64 == 0


def test_what_is_read_ahead_may_be_left_out_or_be_gone(disk: DiskFolder) -> None:
    write(disk, *range(1, 10))
    disk.prefetch([key_of(number) for number in (1, 2, 4, 8, 77)])
    disk.remove([key_of(8)])
    for number in (1, 4, 5):
        assert np.array_equal(disk.read(key_of(number)), blob_of(number))
    assert disk.read(key_of(8)) is None
    disk.prefetch([])
    assert np.array_equal(disk.read(key_of(9)), blob_of(9))


# Removal


def test_what_was_removed_is_gone(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1, 2, 3)
    disk.remove([key_of(2), key_of(77)])
    assert disk.read(key_of(2)) is None
    settle(disk)
    assert not place(folder, 2).exists()
    disk.close(5)
    assert sorted(reopened(folder)) == [0, 1, 3]


def test_no_byte_of_what_was_removed_is_left_in_any_file(disk: DiskFolder, folder: Path) -> None:
    numbers = range(1, 200)
    write(disk, *numbers)
    removed = [number for number in numbers if number >= 40]
    random.Random(4).shuffle(removed)
    for start in range(0, len(removed), 20):
        disk.remove(map(key_of, removed[start : start + 20]))
    settle(disk)
    assert left_of(folder, removed) == []
    disk.close(5)
    assert left_of(folder, removed) == []
    assert left_of(folder, [1, 39]) == [1, 39]


def left_of(folder: Path, numbers: list[int]) -> list[int]:
    """Those of which any file holds four tokens in a row, or 16 bytes of the payload."""
    held = b"".join(path.read_bytes() for path in files_in(folder))
    left: list[int] = []
    for number in numbers:
        tokens = np.array(stored(number).token_ids, "<i4").tobytes()
        payload = blob_of(number).tobytes()
        pieces = [tokens[at : at + 16] for at in range(0, len(tokens) - 15, 4)]
        pieces += [payload[at : at + 16] for at in range(0, len(payload) - 15, 400)]
        if any(piece in held for piece in pieces):
            left.append(number)
    return left


class Gate:
    """Writes of files wait here until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()
        self.paths: list[Path] = []
        self._write = disk_writer.write_file
        monkeypatch.setattr(disk_writer, "write_file", self.write)

    def write(self, path: Path, header: bytes, blob: Blob) -> int:
        self.reached.set()
        assert self.opened.wait(20)
        self.paths.append(path)
        return self._write(path, header, blob)


def test_a_removal_cancels_a_write_that_waits(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    for number in (1, 2, 3):
        disk.write(stored(number), blob_of(number))
    assert gate.reached.wait(20)
    disk.remove([key_of(2)])
    assert disk.num_pending_bytes == stored(1).num_bytes + stored(3).num_bytes
    gate.opened.set()
    assert write(disk) == [Written(key_of(1)), Written(key_of(3))]
    assert gate.paths == [place(folder, 1), place(folder, 3)]


def test_a_removal_that_comes_while_it_is_written_removes_it(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    disk.write(stored(1), blob_of(1))
    assert gate.reached.wait(20)
    disk.remove([key_of(1)])
    assert disk.num_pending_bytes == 0
    gate.opened.set()
    assert write(disk, 0) == [Written(key_of(0))]
    assert gate.paths[0] == place(folder, 1) and not place(folder, 1).exists()
    disk.close(5)
    assert reopened(folder) == [0]


def test_a_segment_that_is_written_again_after_its_removal_stays(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    disk.write(stored(1), blob_of(1))
    assert gate.reached.wait(20)
    disk.remove([key_of(1)])
    disk.write(stored(1), blob_of(1))
    gate.opened.set()
    assert write(disk) == [Written(key_of(1))]
    assert np.array_equal(disk.read(key_of(1)), blob_of(1))
    disk.close(5)
    assert reopened(folder) == [1]


def test_a_file_that_cannot_be_removed_yet_is_removed_later(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 1, 2)
    unlink = Path.unlink

    def held_open(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == SUFFIX:
            raise PermissionError(13, "The file is being used by another process", str(path))
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", held_open)
        disk.remove([key_of(2)])
        settle(disk)
        assert place(folder, 2).exists()
    disk.close(5)
    assert not place(folder, 2).exists()
    assert sorted(reopened(folder)) == [0, 1]


def test_words_that_a_full_disk_left_in_the_index_go_with_the_next_change(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: SegmentIndex) -> None:
        raise OSError(28, "database or disk is full")

    write(disk, 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(SegmentIndex, "commit", full)
        disk.remove([key_of(2)])
        assert write(disk, 0)[0].error

    def bytes_of_the_index() -> bytes:
        files = [path for path in index_files(folder / INDEX_NAME) if path.exists()]
        return b"".join(path.read_bytes() for path in files)

    assert key_of(2) in bytes_of_the_index()
    write(disk, 3)
    assert key_of(1) in bytes_of_the_index()
    assert key_of(2) not in bytes_of_the_index()


# Budgets


def test_every_byte_is_counted(disk: DiskFolder, folder: Path) -> None:
    settle(disk)
    assert disk.num_bytes == num_bytes_in(folder)
    write(disk, *range(1, 80))
    assert disk.num_bytes == num_bytes_in(folder)
    disk.remove(map(key_of, range(10, 80)))
    settle(disk)
    assert disk.num_bytes == num_bytes_in(folder)
    disk.close(5)
    for namespace in (NAMESPACE, OTHER_NAMESPACE):
        again = DiskFolder(folder, namespace)
        again.open()
        assert again.num_bytes == num_bytes_in(folder)
        again.close(5)


def test_what_was_removed_no_longer_counts_at_once(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, 1, 2)
    gate = Gate(monkeypatch)
    disk.write(stored(0), blob_of(0))
    assert gate.reached.wait(20)
    before = disk.num_bytes
    disk.remove([key_of(2)])
    assert disk.num_bytes == before - place(folder, 2).stat().st_size
    gate.opened.set()


def test_other_models_make_room_the_least_recently_used_first(
    disk: DiskFolder, folder: Path
) -> None:
    write(disk, 1, 2, 3)
    disk.update([replace(stored(1), last_used=5e9)])
    disk.close(5)
    other = DiskFolder(folder, OTHER_NAMESPACE)
    assert list(other.open()) == []
    assert other.num_bytes == num_bytes_in(folder)
    write(other, 1)
    sizes = {number: place(folder, number).stat().st_size for number in (1, 2, 3)}
    assert other.make_room(sizes[2] + 1) == sizes[2] + sizes[3]
    settle(other)
    assert [number for number in (1, 2, 3) if place(folder, number).exists()] == [1]
    assert other.num_bytes == num_bytes_in(folder)
    assert other.make_room(10**9) == sizes[1]
    assert other.make_room(10**9) == 0
    other.close(5)
    assert reopened(folder) == []
    assert sorted(reopened(folder, OTHER_NAMESPACE)) == [0, 1]


def test_a_model_that_was_not_used_for_a_month_is_forgotten(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1, 2)
    disk.close(5)
    now = time.time()
    for days, is_there in ((29, True), (31, False)):
        other = DiskFolder(folder, OTHER_NAMESPACE, clock=lambda days=days: now + days * 86400)
        other.open()
        assert namespace_folder(folder, NAMESPACE).exists() == is_there
        assert other.num_bytes == num_bytes_in(folder)
        other.close(5)
    assert left_of(folder, [1, 2]) == []


def test_ones_own_folder_is_kept_however_old(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1)
    disk.close(5)
    os.utime(namespace_folder(folder, NAMESPACE), (1e9, 1e9))
    assert reopened(folder) == [1]
    assert time.time() - namespace_folder(folder, NAMESPACE).stat().st_mtime < 100


# What a killed process, a bad disk or a person leaves


def without(folder: Path) -> None:
    for path in index_files(folder / INDEX_NAME):
        path.unlink(missing_ok=True)


def garbage(folder: Path) -> None:
    (folder / INDEX_NAME).write_bytes(b"no database " * 1000)


def another_version(folder: Path) -> None:

    with sqlite3.connect(folder / INDEX_NAME) as db:
        db.execute("pragma user_version = 99")
    db.close()


def empty(folder: Path) -> None:
    (folder / INDEX_NAME).write_bytes(b"")


@pytest.mark.parametrize("harm", [without, garbage, another_version, empty])
def test_a_lost_index_is_made_anew_from_the_files(
    disk: DiskFolder, folder: Path, harm: Callable[[Path], None]
) -> None:
    write(disk, *range(1, 20))
    disk.close(5)
    harm(folder)
    assert set(reopened(folder)) == set(range(1, 20))
    assert set(reopened(folder)) == set(range(1, 20))


def test_files_of_other_models_are_taken_in_too(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1, 2)
    disk.close(5)
    without(folder)
    assert reopened(folder, OTHER_NAMESPACE) == []
    assert reopened(folder) == [1, 2]


def test_what_has_no_parent_any_more_is_removed(disk: DiskFolder, folder: Path) -> None:
    write(disk, *range(1, 12))
    disk.close(5)
    place(folder, 2).unlink()
    assert set(reopened(folder)) == {1, 3, 6, 7}
    assert not place(folder, 11).exists()
    assert left_of(folder, [2, 4, 5, 8, 9, 10, 11]) == []


def test_leftovers_are_removed_and_strangers_files_are_not(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1)
    disk.close(5)
    part = place(folder, 1).with_name(f"{key_of(5).hex()}.part")
    part.write_bytes(b"half a fi")
    strangers = [folder / "note.txt", namespace_folder(folder, NAMESPACE) / "ff"]
    strangers += [place(folder, 1).parent / "note.txt"]
    for path in strangers:
        path.write_text("mine")
    assert reopened(folder) == [1]
    assert not part.exists()
    assert all(path.read_text() == "mine" for path in strangers)


@pytest.mark.parametrize("is_index_there", [True, False])
def test_mixed_up_and_damaged_files_are_found_and_removed(
    disk: DiskFolder, folder: Path, is_index_there: bool
) -> None:
    write(disk, *range(1, 15))
    disk.close(5)
    # 8 and 15 have the same length.
    place(folder, 8).write_bytes(place(folder, 1).read_bytes())
    place(folder, 9).write_bytes(place(folder, 9).read_bytes()[:-1])
    place(folder, 10).write_bytes(place(folder, 10).read_bytes() + b"x")
    for number, at in ((11, 100), (12, -100)):
        data = bytearray(place(folder, number).read_bytes())
        data[at] ^= 4
        place(folder, number).write_bytes(data)
    if not is_index_there:
        without(folder)
    found = {number_of(segment.key) for segment in disk.open()}
    # Of another length, and never opened.
    assert not found & {9, 10}
    for number in (8, 9, 10, 11, 12):
        assert disk.read(key_of(number)) is None
    settle(disk)
    assert not any(place(folder, number).exists() for number in (8, 9, 10, 11, 12))
    disk.close(5)
    assert set(reopened(folder)) == {0, 1, 2, 3, 4, 5, 6, 7, 13, 14}


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_this_user_may_look_inside(disk: DiskFolder, folder: Path) -> None:
    write(disk, 1, 2)
    everything = [folder, *folder.rglob("*")]
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in everything}
    assert modes == {True: 0o700, False: 0o600}
    disk.close(5)
    folder.chmod(0o755)
    disk.open()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("num_kills", [12, pytest.param(50, marks=pytest.mark.nightly)])
@pytest.mark.skipif(os.name == "nt", reason="kills as POSIX does")
def test_a_process_killed_at_any_moment_leaves_what_is_right(folder: Path, num_kills: int) -> None:
    chance = random.Random(num_kills)
    num_found = 0
    for seed in range(num_kills):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.kv.disk_churn", str(folder), str(seed)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.01, 0.3))
            assert child.poll() is None
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        # Reads all of it, and compares every byte.
        num_found += len(reopened(folder))
        assert not list(folder.rglob("*.part"))
    assert num_found > num_kills


# Faults


def test_a_full_disk_is_told_and_what_comes_later_is_written(
    disk: DiskFolder, folder: Path
) -> None:
    resource = pytest.importorskip("resource")
    write(disk, 1)
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        (written,) = write(disk, 2, num_bytes=500_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert written.key == key_of(2)
    assert "File too large; 0.5 MB were to be written" in written.error
    assert "MB are free): make room on this disk;" in written.error
    assert sorted(path.suffix for path in files_in(folder) if path.suffix != ".sqlite3") == [
        ".kv",
        ".sqlite3-wal",
    ]
    assert disk.num_pending_bytes == 0
    assert write(disk, 3) == [Written(key_of(3))]
    assert disk.num_bytes == num_bytes_in(folder)
    disk.close(5)
    assert sorted(reopened(folder)) == [1, 3]


def test_a_full_disk_under_the_index_leaves_no_file_without_a_row(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: SegmentIndex) -> None:
        raise OSError(28, "database or disk is full")

    write(disk, 1)
    with monkeypatch.context() as patch:
        patch.setattr(SegmentIndex, "commit", full)
        (written,) = write(disk, 2)
    assert "database or disk is full" in written.error
    assert not place(folder, 2).exists()
    assert write(disk, 3) == [Written(key_of(3))]
    assert disk.num_bytes == num_bytes_in(folder)
    disk.close(5)
    assert sorted(reopened(folder)) == [1, 3]


def test_a_folder_that_goes_away_is_told(disk: DiskFolder, folder: Path) -> None:

    write(disk, 1)
    shutil.rmtree(namespace_folder(folder, NAMESPACE))
    assert disk.read(key_of(1)) is None
    folder.rename(folder.with_name("away"))
    (written,) = write(disk, 2)
    assert "No such file" in written.error and "the disk does not answer" in written.error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_has_died_says_so_for_every_write(
    disk: DiskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise RuntimeError("a fault in the app")

    with monkeypatch.context() as patch:
        patch.setattr(disk_writer, "encode_header", broken)
        first = write(disk, 1, 2)
    assert [each.key for each in first] == [key_of(1), key_of(2)]
    assert all("start it again" in each.error for each in first)
    (later,) = write(disk, 3)
    assert later.error == first[0].error


def test_a_folder_that_cannot_be_made_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("")
    with pytest.raises(HomeError, match="cannot be kept in .* until then"):
        DiskFolder(home / "file", NAMESPACE).open()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/sys is Linux's")
def test_a_file_system_that_cannot_be_written_is_one_sentence() -> None:
    with pytest.raises(HomeError, match="cannot be kept in /sys/inglenook"):
        DiskFolder(Path("/sys/inglenook"), NAMESPACE).open()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="no modes, or above them")
def test_a_folder_that_became_read_only_is_one_sentence(disk: DiskFolder, folder: Path) -> None:
    disk.close(5)
    (folder / INDEX_NAME).chmod(0o400)
    with pytest.raises(HomeError, match="cannot be kept in"):
        disk.open()


def test_a_folder_in_use_is_one_sentence_and_its_user_goes_on(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_index, "BUSY_SECONDS", 0.05)
    with pytest.raises(HomeError, match="database is locked"):
        DiskFolder(folder, OTHER_NAMESPACE).open()
    assert write(disk, 1) == [Written(key_of(1))]


def test_a_namespace_of_another_length_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="32 bytes, not 5"):
        DiskFolder(folder, b"short")


# The end


def test_closing_finishes_what_is_queued(disk: DiskFolder, folder: Path) -> None:
    for number in range(1, 30):
        disk.write(stored(number), blob_of(number))
    disk.remove([key_of(20)])
    disk.close(10)
    assert set(reopened(folder)) == set(range(1, 30)) - {20}


def test_closing_ends_in_time_and_leaves_no_half_file(
    disk: DiskFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file = disk_writer.write_file

    def slow(path: Path, header: bytes, blob: Blob) -> int:
        time.sleep(0.1)
        return write_file(path, header, blob)

    write(disk, 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(disk_writer, "write_file", slow)
        for number in range(3, 60):
            disk.write(stored(number), blob_of(number))
        # A removal is done however late it is.
        disk.remove([key_of(2)])
        started = time.monotonic()
        disk.close(0.3)
        assert time.monotonic() - started < 2
    assert not list(folder.rglob("*.part"))
    found = reopened(folder)
    assert 1 in found and 2 not in found and len(found) < 20


def test_before_it_is_open_and_after_it_is_closed_nothing_is_there(folder: Path) -> None:
    disk = DiskFolder(folder, NAMESPACE)
    for _ in range(2):
        disk.write(stored(1), blob_of(1))
        disk.update([stored(1)])
        disk.remove([key_of(1)])
        disk.prefetch([key_of(1)])
        assert disk.read(key_of(1)) is None
        assert disk.make_room(1) == 0
        assert disk.poll() == []
        assert disk.num_bytes == disk.num_pending_bytes == 0
        disk.close(1)
        disk.open()
        write(disk, 1)
        disk.close(1)


def test_the_writer_ends_with_the_disk(disk: DiskFolder) -> None:
    disk.close(5)
    wait_until(lambda: not any(each.name == "kv-writer" for each in threading.enumerate()))


def test_words_of_the_deleted_that_another_model_read_are_deleted_too(
    disk: DiskFolder, folder: Path
) -> None:
    """What somebody else goes through whole stays, since none of it is only the other's."""
    write(disk, 1, 2, 3)
    disk.update([replace(stored(2), num_used={"a": NUM_TOKENS, "b": NUM_TOKENS - 1})])
    disk.update([replace(stored(3), num_used={"b": 4})])
    disk.close(5)
    other = DiskFolder(folder, OTHER_NAMESPACE)
    other.open()
    other.forget_elsewhere(lambda owner: owner == "b")
    settle(other)
    assert [number for number in (1, 2, 3) if place(folder, number).exists()] == [1, 2]
    other.forget_elsewhere(lambda owner: owner != "b")
    settle(other)
    assert [number for number in (1, 2, 3) if place(folder, number).exists()] == []
    assert other.num_bytes == num_bytes_in(folder)
    other.close(5)
