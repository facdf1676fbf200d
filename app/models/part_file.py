"""A file on its way: what has come of it lies beside its place, under a name that nobody loads."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from app.amounts import bytes_in_words
from engine.errors import DownloadEnded

ENDING = ".part"
SPARE_BYTES = 500_000_000
"""Left on the disk for the history and everything else."""
_LOOK_BYTES = 32 * 2**20
_READ_BYTES = 4 * 2**20


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class PartFile:
    """Its size and its SHA-256 so far. Used by one thread at a time; every call may block."""

    def __init__(self, target: Path, free: Callable[[Path], int] = free_bytes) -> None:
        self.target = target
        self.path = target.with_name(target.name + ENDING)
        self.size = 0
        self._free = free
        self._sha256 = hashlib.sha256()
        self._unseen = 0

    def open(self) -> None:
        """Read what came in an earlier run; a file that cannot be read begins anew."""
        self._sha256, self.size = hashlib.sha256(), 0
        try:
            with self.path.open("rb") as file:
                while piece := file.read(_READ_BYTES):
                    self._sha256.update(piece)
                    self.size += len(piece)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._cannot("read", error) from error

    def restart(self) -> None:
        """Forget what has come."""
        self._sha256, self.size = hashlib.sha256(), 0
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._cannot("replaced", error) from error

    def write(self, piece: bytes) -> None:
        """Append. Raises DownloadEnded when the disk is full or nearly so; then nothing of this
        piece counts."""
        self._unseen += len(piece)
        if self._unseen >= _LOOK_BYTES:
            self._unseen = 0
            check_room(self.path.parent, len(piece), self._free)
        try:
            with open(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600), "r+b") as file:
                # What an earlier, failed write may have left is cut off.
                file.truncate(self.size)
                file.seek(self.size)
                file.write(piece)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DownloadEnded(
                    f"The disk is full: {bytes_in_words(self.size)} of {self.target.name} are kept."
                    " Make room and go on with the download."
                ) from error
            raise self._cannot("written", error) from error
        self._sha256.update(piece)
        self.size += len(piece)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def finish(self) -> None:
        """Give it its name, once all of it is on the disk."""
        try:
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
            self.path.replace(self.target)
        except OSError as error:
            raise self._cannot("put in its place", error) from error

    def _cannot(self, what: str, error: OSError) -> DownloadEnded:
        return DownloadEnded(
            f"{self.path} cannot be {what} ({error.strerror}): make the models folder writable."
        )


def check_room(folder: Path, num_bytes: int, free: Callable[[Path], int] = free_bytes) -> None:
    """Raise DownloadEnded when so much would not leave the disk its spare room."""
    left = free(folder)
    if num_bytes + SPARE_BYTES > left:
        raise DownloadEnded(
            f"{bytes_in_words(num_bytes)} are still to come, {bytes_in_words(left)} are free where"
            f" {folder} lies, and {bytes_in_words(SPARE_BYTES)} of them are kept free: make room,"
            " or choose a smaller model."
        )
