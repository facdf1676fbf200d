"""A model file that is handed over by the page: written once, in the folder where it will stay.

.drop-XXXX/NAME.gguf   what has come; goes with its folder, unless all of it comes and is a model
NAME.gguf              there only when it is whole and checked

A browser tells no path, so the file cannot be used where it lies: this makes a second one of it.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from app.amounts import bytes_in_words
from app.file_name import safe_name
from app.models.fetch import settled
from app.models.part_file import check_room, free_bytes
from engine.backends.llama_cpp.adapter_file import check_adapter_file, is_adapter_file
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.gguf_header import MAGIC
from engine.backends.llama_cpp.own_part import give_name
from engine.backends.llama_cpp.split_file import parts_of
from engine.errors import HomeError, UsageError

ENDING = ".gguf"
_FOLDER = ".drop-"
_WRITTEN_BYTES = 4 * 2**20
_LOOK_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Drop:
    """What was announced: the name that the file will have here, and its size."""

    name: str
    num_bytes: int

    @classmethod
    def of(cls, name: str, num_bytes: int) -> "Drop":
        """From what a browser says. Raises UsageError for what is no GGUF file by its name."""
        stem, ending = safe_name(name)
        if f".{ending}".lower() != ENDING or not stem:
            raise UsageError(f"{name} is no GGUF file: choose a model whose name ends in {ENDING}.")
        made = f"{stem}{ENDING}"
        parts = parts_of(Path(made))
        if len(parts) > 1:
            raise UsageError(
                f"{name} is one of {len(parts)} files of a model: put all of them into one folder,"
                " and add that one by its path."
            )
        if num_bytes <= 0:
            raise UsageError(f"{name} is empty: choose another file.")
        return cls(made, num_bytes)

    def check_beginning(self, beginning: bytes) -> None:
        """Raises UsageError for a file that begins as no GGUF file does."""
        if not beginning.startswith(MAGIC):
            raise UsageError(
                f"{self.name} is not a GGUF model, whatever its name says: choose another file."
            )


class Drops:
    """Those of one models folder. Owned by the event loop of the process that owns the home.

    `on_done` hears of each file that is here now; `is_coming` knows the names on their way by
    another one.
    """

    def __init__(
        self,
        folder: Path,
        on_done: Callable[[Path], None],
        is_coming: Callable[[str], bool] = lambda name: False,
        *,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._folder = folder
        self._on_done = on_done
        self._is_coming = is_coming
        self._free = free
        self._names: set[str] = set()
        # Of a process that ended in the middle.
        for left in folder.glob(f"{_FOLDER}*"):
            shutil.rmtree(left, ignore_errors=True)

    def check(self, drop: Drop) -> None:
        """Raise what stands in the way, before anything comes."""
        if (self._folder / drop.name).exists():
            raise UsageError(f"{drop.name} is in the models folder already: remove it first.")
        if drop.name in self._names or self._is_coming(drop.name):
            raise UsageError(f"{drop.name} is on its way already: wait for its end.")
        check_room(self._folder, drop.num_bytes, self._free)

    async def take(self, drop: Drop, pieces: AsyncIterator[bytes]) -> Path:
        """Its file, once all of it came. Whatever is raised, in here or in `pieces`, nothing is
        left of it."""
        self.check(drop)
        self._names.add(drop.name)
        try:
            folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=self._folder))
            try:
                path = folder / drop.name
                await self._write(drop, path, pieces)
                target = self._folder / drop.name
                await settled(lambda: _check(path))
                # A step of its own: one who is cancelled while it is checked leaves nothing.
                await settled(lambda: give_name(path, target))
            finally:
                await settled(lambda: shutil.rmtree(folder, ignore_errors=True))
        except OSError as error:
            raise HomeError(
                f"{drop.name} could not be written to {self._folder} ({error.strerror}): make room"
                " on the disk, or make the folder writable."
            ) from error
        finally:
            self._names.discard(drop.name)
        self._on_done(target)
        return target

    async def _write(self, drop: Drop, path: Path, pieces: AsyncIterator[bytes]) -> None:
        kept, size, unseen = bytearray(), 0, 0
        with path.open("xb") as file:
            path.chmod(0o600)
            async for piece in pieces:
                kept += piece
                if len(kept) < min(_WRITTEN_BYTES, drop.num_bytes - size):
                    continue
                if size == 0:
                    drop.check_beginning(bytes(kept[: len(MAGIC)]))
                if unseen >= _LOOK_BYTES:
                    unseen = 0
                    check_room(self._folder, drop.num_bytes - size, self._free)
                await settled(file.write, bytes(kept))
                size, unseen = size + len(kept), unseen + len(kept)
                kept.clear()
        if kept or size != drop.num_bytes:
            raise UsageError(
                f"{drop.name} ended at {bytes_in_words(size + len(kept))} of"
                f" {bytes_in_words(drop.num_bytes)}: choose it again."
            )


def _check(path: Path) -> None:
    """That it is a model or an adapter, and all of it on the disk. Blocks."""
    if is_adapter_file(path):
        check_adapter_file(path)
    else:
        check_chat_file(path)
    with path.open("rb+") as file:
        os.fsync(file.fileno())
