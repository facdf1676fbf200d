"""Files for one user: whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from app.private_file import write_private


def test_the_text_is_there_in_utf_8(home: Path) -> None:
    file = home / "note"
    for text in ("a longer text", "größe 🙂"):
        write_private(file, text)
        assert file.read_bytes() == text.encode()
    assert list(home.iterdir()) == [file]


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_a_file_that_others_could_read_is_private_afterwards(home: Path) -> None:
    file = home / "note"
    file.touch(mode=0o644)
    write_private(file, "secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_disk_that_is_full_leaves_the_old_text_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = home / "note"
    write_private(file, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(file, "new")
    assert file.read_text() == "old"
    assert list(home.iterdir()) == [file]


def test_a_folder_in_the_place_is_an_error(home: Path) -> None:
    (home / "note").mkdir()
    with pytest.raises(OSError):
        write_private(home / "note", "text")
    assert list(home.iterdir()) == [home / "note"]
