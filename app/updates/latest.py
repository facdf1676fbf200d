"""What `latest.json` says: the newest version that is published, and its archives.

    {"version": "0.2.0", "date": "2026-12-24", "archives": [
        {"name": "inglenook-0.2.0-linux-x86_64.tar.xz", "bytes": 181000000,
         "sha256": "9f86d0...", "system": "linux-x86_64"}]}

The package build writes it, and a stranger may serve it: what has another form is no answer.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from packaging.version import Version

FILE = "latest.json"
MOST_ARCHIVES = 100
LARGEST_ARCHIVE = 2**40
_VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,40}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,120}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SYSTEM = re.compile(r"[0-9a-z_]{1,20}-[0-9a-z_]{1,20}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """One file that can be installed on a `system` such as "linux-x86_64"."""

    name: str
    num_bytes: int
    sha256: str
    system: str

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "bytes": self.num_bytes,
            "sha256": self.sha256,
            "system": self.system,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """The newest version; of the archives for one system the first is the usual one."""

    version: Version
    date: date
    archives: tuple[Archive, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "version": str(self.version),
            "date": self.date.isoformat(),
            "archives": [archive.as_json() for archive in self.archives],
        }


def latest_of(values: object) -> Latest:
    """From the JSON. Raises ValueError that says what is wrong with it."""
    archives = _field(values, "archives", list)
    if len(archives) > MOST_ARCHIVES:
        raise ValueError(f"it has {len(archives):,} archives")
    return Latest(
        version=Version(_text(values, "version", _VERSION)),
        date=date.fromisoformat(_text(values, "date", _DATE)),
        archives=tuple(_archive_of(each) for each in archives),
    )


def _archive_of(values: object) -> Archive:
    num_bytes = _field(values, "bytes", int)
    if isinstance(num_bytes, bool) or not 0 < num_bytes <= LARGEST_ARCHIVE:
        raise ValueError("“bytes” is no size of an archive")
    return Archive(
        name=_text(values, "name", _NAME),
        num_bytes=num_bytes,
        sha256=_text(values, "sha256", _SHA256),
        system=_text(values, "system", _SYSTEM),
    )


def _text(values: object, name: str, form: re.Pattern[str]) -> str:
    text = _field(values, name, str)
    if not form.fullmatch(text):
        raise ValueError(f"“{name}” has another form")
    return text


def _field(values: object, name: str, kind: type[T]) -> T:
    found = values.get(name) if isinstance(values, dict) else None
    if not isinstance(found, kind):
        raise ValueError(f"“{name}” is missing")
    return found
