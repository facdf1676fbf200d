"""This version beside the newest that is published, in a sentence and as JSON."""

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.version import Version

from app.amounts import bytes_in_words
from app.updates.latest import Archive, Latest

SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
PROCESSORS = {"amd64": "x86_64"}
DEBIAN = ".deb"
DEBIAN_FOLDER = Path("/usr/lib/inglenook")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`own` asked for this `system`, and `latest` was published at `address`. `is_debian`: it was
    installed from a .deb."""

    own: Version
    latest: Latest
    address: str
    system: str
    is_debian: bool = False

    @property
    def is_newer(self) -> bool:
        """Whether there is something newer than this."""
        return self.latest.version > self.own

    @property
    def archives(self) -> tuple[Archive, ...]:
        """Those for this system; what is installed as this was comes first."""
        ours = [each for each in self.latest.archives if each.system == self.system]
        return tuple(sorted(ours, key=lambda each: each.name.endswith(DEBIAN) != self.is_debian))

    def url_of(self, archive: Archive) -> str:
        return f"{self.address}/{quote(archive.name)}"

    def sentence(self) -> str:
        newest = f"{self.latest.version} of {self.latest.date}"
        if self.latest.version == self.own:
            return f"This is the newest version: Inglenook {newest}."
        if not self.is_newer:
            return (
                f"This is Inglenook {self.own}, which is newer than the newest that is published,"
                f" {newest}."
            )
        begun = f"Inglenook {newest} is newer than this {self.own}"
        if not self.archives:
            return (
                f"{begun}, but {self.address} has no archive of it for this system"
                f" ({self.system}): ask there for one, or install it from its source; chats and"
                " settings stay."
            )
        archive = self.archives[0]
        return (
            f"{begun}: get {archive.name} ({bytes_in_words(archive.num_bytes)}) from"
            f" {self.url_of(archive)}, see that its SHA-256 is {archive.sha256}, quit Inglenook,"
            " and install it over this one; chats and settings stay."
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "version": str(self.own),
            "newest": str(self.latest.version),
            "date": self.latest.date.isoformat(),
            "newer": self.is_newer,
            "address": self.address,
            "system": self.system,
            "archives": [
                {**archive.as_json(), "url": self.url_of(archive)} for archive in self.archives
            ],
        }


def this_system() -> str:
    """As archives name it."""
    processor = platform.machine().lower()
    system = SYSTEMS.get(sys.platform, sys.platform)
    return f"{system}-{PROCESSORS.get(processor, processor)}"


def is_from_deb() -> bool:
    program = Path(sys.executable)
    return bool(getattr(sys, "frozen", False)) and program.is_relative_to(DEBIAN_FOLDER)
