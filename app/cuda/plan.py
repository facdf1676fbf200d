"""What an installation for the graphics card would fetch, and what it needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from app.amounts import bytes_in_words, counted
from engine.errors import InstallationFailed

# Unpacked against packed: 2.06 over the wheels of torch 2.14 and CUDA 13 on Linux, and bytecode.
UNPACKED = 2.2
NUM_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One file of an installation. `num_bytes` None: its server does not tell."""

    name: str
    version: str
    url: str
    sha256: str = ""
    num_bytes: int | None = None

    @property
    def is_here(self) -> bool:
        return self.url.startswith("file:")

    @property
    def requirement(self) -> str:
        """For pip: this very file, and only with these contents."""
        mark = f"#sha256={self.sha256}" if self.sha256 else ""
        return f"{self.name} @ {self.url}{mark}"

    @property
    def path(self) -> Path:
        """Of one that is here."""
        return Path(url2pathname(urlsplit(self.url).path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`python` is the version that the environment gets, `free_bytes` what its disk has."""

    python: str
    files: tuple[WheelFile, ...]
    free_bytes: int

    @property
    def torch(self) -> str:
        return next(file.version for file in self.files if file.name == "torch")

    @property
    def fetched_bytes(self) -> int:
        return sum(file.num_bytes or 0 for file in self.files if not file.is_here)

    @property
    def num_unknown(self) -> int:
        return sum(file.num_bytes is None for file in self.files)

    @property
    def needed_bytes(self) -> int:
        """On the disk while it is made: what is fetched, and beside it what is unpacked."""
        return self.fetched_bytes + self.installed_bytes

    @property
    def installed_bytes(self) -> int:
        return round(UNPACKED * sum(file.num_bytes or 0 for file in self.files))

    @property
    def is_too_large(self) -> bool:
        return self.needed_bytes > self.free_bytes

    def lines(self) -> list[str]:
        """Sentences without their full stops."""
        fetched = [file for file in self.files if not file.is_here]
        largest = sorted(self.files, key=lambda file: file.num_bytes or 0, reverse=True)
        named = ", ".join(
            f"{file.name} {file.version} ({bytes_in_words(file.num_bytes or 0)})"
            for file in largest[:NUM_NAMED]
        )
        unknown = (
            f", and {counted(self.num_unknown, 'file')} of unknown size" if self.num_unknown else ""
        )
        return [
            f"it fetches {counted(len(fetched), 'file')} with"
            f" {bytes_in_words(self.fetched_bytes)}{unknown};"
            f" {counted(len(self.files) - len(fetched), 'file')} of {len(self.files)} are here",
            f"the largest: {named}",
            f"it needs about {bytes_in_words(self.needed_bytes)} of disk while it is made and about"
            f" {bytes_in_words(self.installed_bytes)} afterwards;"
            f" {bytes_in_words(self.free_bytes)} are free",
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "python": self.python,
            "torch": self.torch,
            "fetched_bytes": self.fetched_bytes,
            "installed_bytes": self.installed_bytes,
            "needed_bytes": self.needed_bytes,
            "free_bytes": self.free_bytes,
            "num_unknown": self.num_unknown,
            "files": [
                {"name": file.name, "version": file.version, "bytes": file.num_bytes}
                for file in self.files
            ],
        }


def file_of(item: Mapping[str, Any]) -> WheelFile:
    """One of pip's report. Raises InstallationFailed for what it does not understand."""
    try:
        download, metadata = item["download_info"], item["metadata"]
        url = str(download["url"])
        hashes = download.get("archive_info", {}).get("hashes", {})
        file = WheelFile(
            name=str(metadata["name"]).lower(),
            version=str(metadata["version"]),
            url=url,
            sha256=str(hashes.get("sha256", "")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InstallationFailed(
            "pip's report cannot be understood: install a newer Python, and try again."
        ) from error
    return file
