"""Documents that are handed over by the page: kept in a folder of our own, since a browser tells no
path under which they could be read where they lie.

.coming-XXXX   what has come of one; goes unless all of it comes
NAME.pdf       there only when it is whole
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from app.amounts import bytes_in_words
from app.documents.kinds import NAMES, kind_of_ending
from app.documents.scan import sha256_of
from app.documents.sniff import MOST_FILE_BYTES
from app.file_name import safe_name
from app.models.fetch import settled
from app.models.part_file import SPARE_BYTES, free_bytes
from engine.errors import HomeError, UsageError

_COMING = ".coming-"
_WRITTEN_BYTES = 4 * 2**20


class Received:
    """The documents in that folder. Owned by the event loop of the process that owns the home."""

    def __init__(self, folder: Path, *, free: Callable[[Path], int] = free_bytes) -> None:
        self.folder = folder
        self._free = free
        # Of two files with one name that end at once, the second sees the first.
        self._naming = asyncio.Lock()
        # Of a process that ended in the middle.
        for left in folder.glob(f"{_COMING}*"):
            with suppress(OSError):
                left.unlink()

    def has(self, path: Path) -> bool:
        """Whether it is this folder or one of its files, by its name alone: nothing in it is
        resolved, so nothing leads out."""
        if path == self.folder:
            return True
        is_name = path.name not in ("", "..") and not path.name.startswith(_COMING)
        return is_name and path.parent == self.folder

    def check(self, name: str, num_bytes: int) -> str:
        """The name it will have here. Raises what stands in the way, before anything comes."""
        stem, ending = safe_name(name)
        if not stem or kind_of_ending(f".{ending}") is None:
            kinds = ", ".join(dict.fromkeys(NAMES.values()))
            raise UsageError(
                f"{name} is no kind of file that is read ({kinds}): choose another one."
            )
        if num_bytes <= 0:
            raise UsageError(f"{name} is empty: choose another file.")
        if num_bytes > MOST_FILE_BYTES:
            raise UsageError(
                f"{name} has {bytes_in_words(num_bytes)}, and files up to"
                f" {bytes_in_words(MOST_FILE_BYTES)} are read: choose a smaller one."
            )
        left = self._free(self.folder.parent)
        if num_bytes + SPARE_BYTES > left:
            raise UsageError(
                f"{name} has {bytes_in_words(num_bytes)}, {bytes_in_words(left)} are free where"
                f" {self.folder} lies, and {bytes_in_words(SPARE_BYTES)} of them are kept free:"
                " make room, or add it by its path."
            )
        return f"{stem}.{ending}"

    async def take(self, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> Path:
        """The file, once all of it came; the one that is here already where it has the same bytes.
        Whatever is raised, nothing is left of it."""
        kept = self.check(name, num_bytes)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, coming = tempfile.mkstemp(prefix=_COMING, dir=self.folder)
            try:
                with open(descriptor, "wb") as file:
                    sha256 = await _write(file, name, num_bytes, pieces)
                async with self._naming:
                    path = await asyncio.to_thread(self._place, kept, num_bytes, sha256)
                    # At once, so that one who is cancelled before leaves nothing.
                    if not path.exists():
                        os.replace(coming, path)
                return path
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(coming)
        except OSError as error:
            raise HomeError(
                f"{name} could not be written to {self.folder} ({error.strerror}): make room on"
                " the disk, or make the folder writable."
            ) from error

    def delete(self, path: Path) -> int:
        """A file of this folder, or all of it; how many files that were. Raises UsageError."""
        if not self.has(path):
            raise UsageError(f"{path} is not one of the files that Inglenook keeps.")
        num = 0
        for file in [path] if path != self.folder else self._files():
            try:
                file.unlink()
                num += 1
            except FileNotFoundError:
                continue
            except OSError as error:
                raise HomeError(f"{file} could not be deleted ({error.strerror}).") from error
        return num

    def _files(self) -> list[Path]:
        """Without what is still coming. None where the folder is not there yet."""
        try:
            return [each for each in self.folder.iterdir() if not each.name.startswith(_COMING)]
        except FileNotFoundError:
            return []

    def _place(self, name: str, num_bytes: int, sha256: str) -> Path:
        """The file that has these bytes already, or a name that no other one has. Blocks."""
        path = self.folder / name
        stem, ending, number = path.stem, path.suffix, 1
        while path.exists():
            if path.stat().st_size == num_bytes and sha256_of(str(path)) == sha256:
                return path
            number += 1
            path = self.folder / f"{stem} ({number}){ending}"
        return path


async def _write(file: BinaryIO, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> str:
    """All of it, to the disk; its SHA-256. Raises UsageError where it has another size."""
    digest, size, unwritten = hashlib.sha256(), 0, bytearray()

    def write(piece: bytes) -> None:
        file.write(piece)
        digest.update(piece)

    async for piece in pieces:
        size += len(piece)
        if size > num_bytes:
            break
        unwritten += piece
        if len(unwritten) >= _WRITTEN_BYTES:
            await settled(write, bytes(unwritten))
            unwritten.clear()
    if size != num_bytes:
        raise UsageError(
            f"{name} came with {bytes_in_words(size)} of {bytes_in_words(num_bytes)}: choose it"
            " again."
        )
    await settled(write, bytes(unwritten))
    await settled(lambda: _sync(file))
    return digest.hexdigest()


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
