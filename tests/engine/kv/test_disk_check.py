"""The look at the whole disk tier: every fault is counted, and repaired without a loss of more."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.kv import segment_index
from engine.kv.disk_check import DiskReport, check_disk, repair_disk
from engine.kv.disk_folder import INDEX_NAME, DiskFolder
from engine.kv.segment_file import segment_path
from tests.engine.kv.stored import (
    NAMESPACE,
    OTHER_NAMESPACE,
    files_in,
    key_of,
    num_bytes_in,
    number_of,
    write,
)

NUM_SEGMENTS = 18


@pytest.fixture
def folder(home: Path) -> Path:
    """Two models with segments 1 to 9 each."""
    folder = home / "kv"
    for namespace in (NAMESPACE, OTHER_NAMESPACE):
        disk = DiskFolder(folder, namespace)
        disk.open()
        write(disk, *range(1, 10))
        disk.close(5)
    return folder


def place(folder: Path, number: int, namespace: bytes = NAMESPACE) -> Path:
    return segment_path(folder, namespace, key_of(number))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in files_in(folder)}


def numbers(folder: Path, namespace: bytes) -> set[int]:
    disk = DiskFolder(folder, namespace)
    found = {number_of(segment.key) for segment in disk.open()}
    assert all(disk.read(key_of(number)) is not None for number in found)
    disk.close(5)
    return found


def test_a_sound_folder_is_sound(folder: Path) -> None:
    report = check_disk(folder)
    assert report == DiskReport(num_segments=NUM_SEGMENTS, num_bytes=num_bytes_in(folder))
    assert report.is_sound


def test_no_folder_is_sound_and_none_is_made(home: Path) -> None:
    for look in (check_disk, repair_disk):
        assert look(home / "kv") == DiskReport()
    assert not (home / "kv").exists()


def test_an_empty_folder_is_sound(home: Path) -> None:
    for look in (check_disk, repair_disk):
        assert look(home).is_sound


def damaged_payload(folder: Path) -> DiskReport:
    flip(place(folder, 8), -1)
    return DiskReport(num_segments=NUM_SEGMENTS - 1, num_damaged=1)


def damaged_header_of_a_parent(folder: Path) -> DiskReport:
    flip(place(folder, 2), 60)
    # 4, 5, 8 and 9 stand on it.
    return DiskReport(num_segments=NUM_SEGMENTS - 1, num_damaged=1, num_orphans=4)


def damaged_file_of_another_model(folder: Path) -> DiskReport:
    flip(place(folder, 9, OTHER_NAMESPACE), -1)
    return DiskReport(num_segments=NUM_SEGMENTS - 1, num_damaged=1)


def cut_off(folder: Path) -> DiskReport:
    place(folder, 8).write_bytes(place(folder, 8).read_bytes()[:3000])
    place(folder, 9).write_bytes(b"")
    return DiskReport(num_segments=NUM_SEGMENTS - 2, num_damaged=2)


def swapped(folder: Path) -> DiskReport:
    place(folder, 8).write_bytes(place(folder, 1).read_bytes())
    return DiskReport(num_segments=NUM_SEGMENTS - 1, num_damaged=1)


def leftover(folder: Path) -> DiskReport:
    place(folder, 1).with_suffix(".part").write_bytes(b"half")
    return DiskReport(num_segments=NUM_SEGMENTS, num_damaged=1)


def row_without_file(folder: Path) -> DiskReport:
    place(folder, 9).unlink()
    return DiskReport(num_segments=NUM_SEGMENTS - 1, num_orphans=1)


def file_without_row(folder: Path) -> DiskReport:
    kept = place(folder, 9).read_bytes()
    disk = DiskFolder(folder, NAMESPACE)
    disk.open()
    disk.remove([key_of(9)])
    disk.close(5)
    place(folder, 9).write_bytes(kept)
    return DiskReport(num_segments=NUM_SEGMENTS, num_orphans=1)


def garbage_index(folder: Path) -> DiskReport:
    (folder / INDEX_NAME).write_bytes(b"garbage" * 999)
    return DiskReport(num_segments=NUM_SEGMENTS, is_index_damaged=True)


def no_index(folder: Path) -> DiskReport:
    (folder / INDEX_NAME).unlink()
    return DiskReport(num_segments=NUM_SEGMENTS, is_index_damaged=True)


HARMS = [
    damaged_payload,
    damaged_header_of_a_parent,
    damaged_file_of_another_model,
    cut_off,
    swapped,
    leftover,
    row_without_file,
    file_without_row,
    garbage_index,
    no_index,
]


def without_bytes(report: DiskReport) -> tuple[int, int, int, bool, bool]:
    return (
        report.num_segments,
        report.num_damaged,
        report.num_orphans,
        report.is_index_damaged,
        report.is_in_use,
    )


@pytest.mark.parametrize("harm", HARMS)
def test_a_fault_is_counted_and_repaired(folder: Path, harm: Callable[[Path], DiskReport]) -> None:
    expected = harm(folder)
    before = contents(folder)
    assert without_bytes(check_disk(folder)) == without_bytes(expected)
    assert contents(folder) == before
    assert without_bytes(repair_disk(folder)) == without_bytes(expected)
    after = check_disk(folder)
    assert after.is_sound
    num_left = expected.num_segments
    if harm is damaged_header_of_a_parent:
        num_left -= 4
    assert after.num_segments == num_left
    found = numbers(folder, NAMESPACE), numbers(folder, OTHER_NAMESPACE)
    assert sum(map(len, found)) == num_left


def test_what_an_app_uses_is_counted_and_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_index, "BUSY_SECONDS", 0.05)
    disk = DiskFolder(folder, NAMESPACE)
    disk.open()
    flip(place(folder, 8), -1)
    report = check_disk(folder)
    assert report.is_in_use and report.num_segments == NUM_SEGMENTS
    assert report.num_bytes == num_bytes_in(folder)
    with pytest.raises(OSError) as refusal:
        repair_disk(folder)
    assert refusal.value.errno == errno.EBUSY
    assert place(folder, 8).exists()
    disk.close(5)
