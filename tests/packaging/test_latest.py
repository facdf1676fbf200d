"""`latest.json` of a build: what the program reads, of all archives that lie there."""

import hashlib
import json
from datetime import date
from pathlib import Path

import pytest
from engine_wheel import BuildError
from latest import write_latest

from app.updates.latest import Latest, latest_of

DAY = date(2026, 12, 24)
SYSTEMS = {
    "inglenook-0.2.0-linux-x86_64.tar.xz": "linux-x86_64",
    "inglenook-0.2.0-windows-x86_64-setup.exe": "windows-x86_64",
    "inglenook-0.2.0-macos-arm64.dmg": "macos-arm64",
    "inglenook_0.2.0_amd64.deb": "linux-x86_64",
    "inglenook-0.2.0-windows-x86_64.zip": "windows-x86_64",
}
OTHERS = (
    "inglenook-0.2.0-THIRD-PARTY-NOTICES.txt",
    "inglenook-0.2.0-cdx.json",
    "inglenook-0.2.01-linux-x86_64.tar.xz",
    "inglenook-0.1.0-linux-x86_64.tar.xz",
    "inglenook_0.2.0_riscv64.deb",
    "notes.zip",
)


def written(folder: Path) -> Latest:
    return latest_of(json.loads(write_latest(folder, "0.2.0", DAY).read_text(encoding="utf-8")))


def test_every_archive_of_the_version_is_told_and_nothing_else(tmp_path: Path) -> None:
    for name in (*SYSTEMS, *OTHERS):
        (tmp_path / name).write_bytes(name.encode() * 1_000)
    latest = written(tmp_path)
    assert (str(latest.version), latest.date) == ("0.2.0", DAY)
    # In this order: the usual one of each system comes first.
    assert [(each.name, each.system) for each in latest.archives] == list(SYSTEMS.items())
    for archive in latest.archives:
        content = (tmp_path / archive.name).read_bytes()
        assert archive.num_bytes == len(content)
        assert archive.sha256 == hashlib.sha256(content).hexdigest()


def test_it_is_made_anew_when_other_systems_have_come(tmp_path: Path) -> None:
    names = list(SYSTEMS)
    for number, name in enumerate(names, start=1):
        (tmp_path / name).write_bytes(b"x")
        assert len(written(tmp_path).archives) == number


def test_a_folder_without_archives_is_refused(tmp_path: Path) -> None:
    (tmp_path / OTHERS[0]).write_bytes(b"x")
    with pytest.raises(BuildError, match="has no archive of version 0.2.0: make one first"):
        write_latest(tmp_path, "0.2.0", DAY)
    with pytest.raises(BuildError, match="is no folder: name the one"):
        write_latest(tmp_path / "elsewhere", "0.2.0", DAY)
