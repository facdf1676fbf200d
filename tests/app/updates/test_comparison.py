"""Versions are compared as versions, and what is said names the archive for this machine."""

import platform
import sys
from typing import Any

import pytest
from packaging.version import Version

from app.updates.comparison import Comparison, is_from_deb, this_system
from app.updates.latest import latest_of
from tests.fakes_releases import SUM, newer

LINUX = "linux-x86_64"


def compared(own: str, newest: str, **options: Any) -> Comparison:
    number = newest.replace("!", "-")
    archives = [
        {"name": name, "bytes": 181_000_000, "sha256": SUM, "system": system}
        for name, system in (
            (f"inglenook-{number}-windows-x86_64-setup.exe", "windows-x86_64"),
            (f"inglenook-{number}-linux-x86_64.tar.xz", LINUX),
            (f"inglenook_{number}_amd64.deb", LINUX),
        )
    ]
    given = {"system": LINUX, "address": "https://e.org/inglenook", **options}
    latest = latest_of(newer(newest, archives=archives))
    return Comparison(own=Version(own), latest=latest, **given)


@pytest.mark.parametrize(
    ("own", "newest"),
    [
        ("0.9.0", "0.10.0"),
        ("0.1.0", "0.1.1"),
        ("0.2.0rc1", "0.2.0"),
        ("0.2.0.dev3", "0.2.0a1"),
        ("0.2.0", "0.2.0.post1"),
        ("9.0", "1!0.1"),
    ],
)
def test_a_newer_version_is_newer_and_not_the_other_way_round(own: str, newest: str) -> None:
    assert compared(own, newest).is_newer
    assert not compared(newest, own).is_newer
    assert f"is newer than this {own}" in compared(own, newest).sentence()
    assert f"{newest}, which is newer than the newest" in compared(newest, own).sentence()


def test_the_same_version_is_the_newest_however_it_is_spelled() -> None:
    same = compared("0.1.0", "0.1")
    assert not same.is_newer
    assert same.sentence() == "This is the newest version: Inglenook 0.1 of 2026-12-24."


def test_the_archive_is_named_with_its_size_its_sum_and_its_place() -> None:
    name = "inglenook-0.2.0-linux-x86_64.tar.xz"
    assert compared("0.1.0", "0.2.0").sentence() == (
        f"Inglenook 0.2.0 of 2026-12-24 is newer than this 0.1.0: get {name} (181 MB) from"
        f" https://e.org/inglenook/{name}, see that its SHA-256 is {SUM}, quit Inglenook, and"
        " install it over this one; chats and settings stay."
    )


def test_what_came_as_a_deb_is_renewed_by_one() -> None:
    names = [each.name for each in compared("0.1.0", "0.2.0", is_debian=True).archives]
    assert names == ["inglenook_0.2.0_amd64.deb", "inglenook-0.2.0-linux-x86_64.tar.xz"]


def test_without_an_archive_for_this_system_that_is_said() -> None:
    found = compared("0.1.0", "0.2.0", system="linux-riscv64")
    assert found.archives == ()
    assert "has no archive of it for this system (linux-riscv64)" in found.sentence()
    assert found.as_json()["newer"] and found.as_json()["archives"] == []


def test_programs_get_the_same_as_json() -> None:
    told = compared("0.1.0", "0.2.0").as_json()
    assert (told["version"], told["newest"], told["newer"]) == ("0.1.0", "0.2.0", True)
    assert [archive["url"] for archive in told["archives"]] == [
        "https://e.org/inglenook/inglenook-0.2.0-linux-x86_64.tar.xz",
        "https://e.org/inglenook/inglenook_0.2.0_amd64.deb",
    ]


@pytest.mark.parametrize(
    ("name", "machine", "system"),
    [
        ("linux", "x86_64", "linux-x86_64"),
        ("linux", "aarch64", "linux-aarch64"),
        ("win32", "AMD64", "windows-x86_64"),
        ("darwin", "arm64", "macos-arm64"),
    ],
)
def test_a_system_is_called_as_its_archives_are(
    name: str, machine: str, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert this_system() == system


def test_only_a_program_in_the_place_of_the_deb_came_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_from_deb()
    monkeypatch.setattr(sys, "executable", "/usr/lib/inglenook/inglenook")
    assert not is_from_deb()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert is_from_deb()
    monkeypatch.setattr(sys, "executable", "/home/me/.local/opt/inglenook/inglenook")
    assert not is_from_deb()
