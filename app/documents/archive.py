"""The gate for files that are archives inside (docx, xlsx, epub, ...), before anything is unpacked.

What a member unpacks to is written in the archive, and Python's zipfile gives out no byte more than
that; so the sum of what is written there bounds what reading can cost, however the archive lies.
An archive inside the archive is a member like any other: nothing here opens it.
"""

import io
import zipfile
import zlib
from typing import IO

from app.documents.document import FileState, Unreadable

MOST_MEMBERS = 10_000
MOST_UNPACKED_BYTES = 300_000_000
MOST_RATIO = 200
"""Between what a large member unpacks to and what it takes packed; texts reach about 20."""
LARGE_MEMBER_BYTES = 10_000_000
ENCRYPTED = 0x1
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)
"""What zipfile raises for an archive that is not as it says."""


class Archive:
    """An archive that has passed the gate. Owned by whoever reads the file."""

    def __init__(self, data: bytes, name: str) -> None:
        """Raises Unreadable."""
        self.name = name
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except BROKEN as error:
            raise self._damaged() from error
        self._check(len(data))
        self.members = frozenset(self._zip.namelist())

    def open(self, member: str) -> IO[bytes]:
        """Its bytes as a stream. Raises KeyError when there is no such member."""
        return self._zip.open(member)

    def read(self, member: str) -> bytes:
        """All of it. Raises KeyError, or Unreadable."""
        try:
            return self._zip.read(member)
        except BROKEN as error:
            raise self._damaged() from error

    def find(self, member: str) -> str | None:
        """The member of this name, in whatever case its maker wrote it."""
        if member in self.members:
            return member
        folded = member.lower()
        return next((name for name in self.members if name.lower() == folded), None)

    def _damaged(self) -> Unreadable:
        return Unreadable(
            FileState.DAMAGED,
            f"{self.name} is cut off or damaged: copy it again from where it came from.",
        )

    def _check(self, packed_bytes: int) -> None:
        members = self._zip.infolist()
        if len(members) > MOST_MEMBERS:
            raise Unreadable(
                FileState.TOO_LARGE,
                f"{self.name} holds {len(members):,} parts and may hold {MOST_MEMBERS:,}.",
            )
        unpacked = sum(member.file_size for member in members)
        if unpacked > MOST_UNPACKED_BYTES:
            raise Unreadable(
                FileState.TOO_LARGE,
                f"{self.name} has {packed_bytes / 1e6:,.1f} MB and unpacks to"
                f" {unpacked / 1e6:,.0f} MB, more than the limit of"
                f" {MOST_UNPACKED_BYTES / 1e6:,.0f} MB.",
            )
        for member in members:
            self._check_member(member)

    def _check_member(self, member: zipfile.ZipInfo) -> None:
        size, packed = member.file_size, max(member.compress_size, 1)
        if size > LARGE_MEMBER_BYTES and size > MOST_RATIO * packed:
            raise Unreadable(
                FileState.TOO_LARGE,
                f"A part of {self.name} unpacks from {packed / 1e6:,.2f} MB to"
                f" {size / 1e6:,.0f} MB, {size / packed:,.0f} times as much; at most"
                f" {MOST_RATIO} times is taken.",
            )
        # The name as it stands in the file: zipfile mends some of what is looked for here.
        name = member.orig_filename.replace("\\", "/")
        if name.startswith("/") or ".." in name.split("/") or name[1:2] == ":":
            raise Unreadable(
                FileState.DAMAGED,
                f"{self.name} has a part that points out of it, which no office program writes:"
                " it is not opened.",
            )
        if member.flag_bits & ENCRYPTED:
            raise Unreadable(
                FileState.NEEDS_PASSWORD,
                f"{self.name} is protected by a password inside, which only the program that made"
                " it can open: save a copy without it there.",
            )
