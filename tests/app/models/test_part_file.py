"""A file on its way: what came counts once, whatever went wrong while it was written."""

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from app.models.part_file import PartFile, check_room
from engine.errors import DownloadEnded


@pytest.fixture
def part(tmp_path: Path) -> PartFile:
    part = PartFile(tmp_path / "m.gguf", lambda folder: 10**12)
    part.open()
    return part


def test_pieces_make_the_file_and_its_sum(part: PartFile) -> None:
    part.write(b"one")
    part.write(b"two")
    assert part.sha256 == hashlib.sha256(b"onetwo").hexdigest()
    part.finish()
    assert part.target.read_bytes() == b"onetwo"
    assert not part.path.exists()


def test_what_an_earlier_run_left_counts(part: PartFile) -> None:
    part.write(b"one")
    again = PartFile(part.target)
    again.open()
    again.write(b"two")
    assert (again.size, again.sha256) == (6, hashlib.sha256(b"onetwo").hexdigest())


def test_a_piece_that_was_written_in_part_is_written_anew(part: PartFile) -> None:
    part.write(b"one")
    with part.path.open("ab") as file:
        file.write(b"tw")
    part.write(b"two")
    part.finish()
    assert part.target.read_bytes() == b"onetwo"


def test_a_full_disk_keeps_what_came_and_says_how_much(
    part: PartFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    part.write(b"x" * 2_000_000)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(DownloadEnded, match="The disk is full: 2 MB of m.gguf are kept"):
            part.write(b"more")
    assert part.size == 2_000_000
    part.write(b"more")
    assert part.path.stat().st_size == 2_000_004


def test_a_folder_that_may_not_be_written_is_one_sentence(
    part: PartFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(DownloadEnded, match="Permission denied.: make the models folder writable"):
        part.write(b"x")


def test_the_disk_keeps_room_for_everything_else(tmp_path: Path) -> None:
    check_room(tmp_path, 10**9, lambda folder: 1_500_000_000)
    with pytest.raises(DownloadEnded, match="1 GB are still to come, 1.5 GB are free"):
        check_room(tmp_path, 10**9 + 1, lambda folder: 1_500_000_000)
