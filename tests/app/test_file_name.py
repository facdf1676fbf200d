"""The name of a file that is handed over, in a folder of ours."""

import os

import pytest

from app.file_name import LONGEST_NAME, safe_name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("lease.pdf", ("lease", "pdf")),
        ("Café v1.5.PDF", ("Café v1.5", "PDF")),
        ("../../evil.txt", ("_.._evil", "txt")),
        ("C:\\x\\y.txt", ("C_x_y", "txt")),
        (" .hidden. .txt", ("hidden", "txt")),
        ("a\udce9\0b.txt", ("a_b", "txt")),
        ("none", ("", "none")),
        (".pdf", ("", "pdf")),
        ("", ("", "")),
    ],
)
def test_a_name_points_nowhere_and_is_text(name: str, kept: tuple[str, str]) -> None:
    assert safe_name(name) == kept


@pytest.mark.parametrize("letter", ["x", "é", "契", "👩"])
def test_a_long_name_ends_with_a_whole_letter_that_disks_take(letter: str) -> None:
    stem, ending = safe_name(f"{letter * 300}.txt")
    assert ending == "txt" and stem == letter * (LONGEST_NAME // len(letter.encode()))
    assert len(os.fsencode(f"{stem} (1000).markdown")) < 256
