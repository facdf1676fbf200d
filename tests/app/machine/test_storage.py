"""Memory and disk as the machine tells of them."""

from pathlib import Path

import pytest

from app.machine import storage
from app.machine.storage import look_at_disk, look_at_memory, read_speed


def test_memory_is_told_in_bytes() -> None:
    memory = look_at_memory()
    assert 0 < memory.available <= memory.total
    assert 0 <= memory.swap_used <= memory.swap_total


def test_the_disk_of_a_file_is_told_also_where_the_file_is_missing(tmp_path: Path) -> None:
    disk = look_at_disk(tmp_path / "missing.gguf")
    assert disk.place == str(tmp_path)
    assert 0 < disk.free <= disk.total and disk.read_bytes_per_s is None


def test_a_file_is_read_past_the_memory_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(9_000_001))
    speed = read_speed(file)
    assert speed is None or speed > 0


def test_a_system_without_such_reads_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.delattr(storage.os, "O_DIRECT", raising=False)
    assert read_speed(file) is None


def test_an_empty_file_has_no_speed(tmp_path: Path) -> None:
    file = tmp_path / "empty.gguf"
    file.touch()
    assert read_speed(file) is None
