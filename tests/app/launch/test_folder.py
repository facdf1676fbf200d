"""A folder is shown in the program that the system has, or not at all."""

import sys
import time
from pathlib import Path

import pytest

from app.launch.folder import show_folder


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="they have programs of their own")
def test_the_folder_is_handed_to_the_systems_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    show_folder(tmp_path)  # there is none, and that is harmless
    program, said = tmp_path / "xdg-open", tmp_path / "said"
    program.write_text(f'#!/bin/sh\necho "$1" > "{said}.part"\n/bin/mv "{said}.part" "{said}"\n')
    program.chmod(0o700)
    show_folder(tmp_path / "Täst dir")
    deadline = time.monotonic() + 30
    while not said.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert said.read_text() == f"{tmp_path / 'Täst dir'}\n"
