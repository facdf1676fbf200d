"""`latest.json`: what has its form is read as it was written, and all else is refused."""

import json
from typing import Any

import pytest
from packaging.version import Version

from app.updates.latest import MOST_ARCHIVES, latest_of
from tests.fakes_releases import newer


def with_archive(**changes: Any) -> dict[str, Any]:
    (archive, *_) = newer()["archives"]
    return newer(archives=[{**archive, **changes}])


def test_what_was_written_is_read() -> None:
    latest = latest_of(newer("1.2.0rc1"))
    assert latest.version == Version("1.2.0rc1") and latest.date.year == 2026
    assert latest_of(json.loads(json.dumps(latest.as_json()))) == latest


def test_what_a_later_version_adds_is_no_fault() -> None:
    assert latest_of({**newer(), "notes": "https://e.org"}) == latest_of(newer())


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        "0.2.0",
        {},
        newer(version=None),
        newer(version=2),
        newer(version="the newest"),
        newer(version="1." + 300 * "9"),
        newer(version="<b>1.0</b>"),
        newer(date="tomorrow"),
        newer(date="2026-13-24"),
        newer(date=None),
        newer(archives=None),
        newer(archives={}),
        newer(archives=["inglenook.tar.xz"]),
        newer(archives=newer()["archives"] * MOST_ARCHIVES),
        with_archive(name="../../etc/passwd"),
        with_archive(name="<img src=x>.tar.xz"),
        with_archive(name="a\u202exz.rat"),
        with_archive(name=""),
        with_archive(bytes=0),
        with_archive(bytes=-5),
        with_archive(bytes=True),
        with_archive(bytes=1.5),
        with_archive(bytes="181000000"),
        with_archive(bytes=10**30),
        with_archive(sha256="no sum"),
        with_archive(sha256=64 * "G"),
        with_archive(system="linux"),
        with_archive(system="linux-x86_64\n"),
    ],
    ids=lambda values: repr(values)[:60],
)
def test_what_has_another_form_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="."):
        latest_of(values)
