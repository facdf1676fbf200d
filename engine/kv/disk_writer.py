"""The thread that changes the disk tier: files first, their rows in one transaction after them.

    write    file under another name, renamed, row      a file without a row is taken in at `open`
    remove   file unlinked, row                         a row without a file is dropped at `open`

So the process may end between any two steps.
"""

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from engine.kv.disk import StoredSegment
from engine.kv.segment import Blob
from engine.kv.segment_file import encode_header, segment_path, write_file
from engine.kv.segment_index import Name, SegmentIndex

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Write:
    """Its sender takes the blob away again to cancel it."""

    segment: StoredSegment
    blob: Blob | None


@dataclass(frozen=True, slots=True)
class Update:
    segments: Sequence[StoredSegment]


@dataclass(frozen=True, slots=True)
class Remove:
    names: Sequence[Name]


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing comes after it."""


Command = Write | Update | Remove | Stop


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one write that was not cancelled: the length of its file, or a sentence for the user."""

    write: Write
    num_bytes: int = 0
    error: str = ""


class DiskWriter:
    """Owns the index and all changes of files from `start` on. Commands go in, outcomes come out,
    both in order."""

    def __init__(self, folder: Path, namespace: bytes, index: SegmentIndex) -> None:
        self._folder = folder
        self._namespace = namespace
        self._index = index
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self.outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self.num_index_bytes = index.num_bytes
        self._deadline = float("inf")
        # What could not be removed, and is tried again: on some systems a file that is being read
        # stays, and on a full disk a row.
        self._stubborn: set[Name] = set()
        # A daemon: a disk that hangs must not keep the app from ending.
        self._thread = threading.Thread(target=self._run, name="kv-writer", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        self._commands.put(command)

    def stop(self, seconds: float) -> None:
        """Finish what was sent. What is not written by then never will be."""
        self._deadline = time.monotonic() + seconds
        self.send(Stop())
        # The file that is being written now, and the last transaction.
        self._thread.join(seconds + 1.0)

    def _run(self) -> None:
        try:
            while self._carry_out(self._next_commands()):
                pass
        finally:
            self._index.close()

    def _next_commands(self) -> list[Command]:
        commands = [self._commands.get()]
        while not self._commands.empty():
            commands.append(self._commands.get())
        return commands

    def _carry_out(self, commands: Sequence[Command]) -> bool:
        """False: that was the last."""
        changes: list[Callable[[], None]] = []
        outcomes: list[Outcome] = []
        removed: list[Name] = []
        is_last = False
        if self._stubborn:
            commands = [Remove(sorted(self._stubborn)), *commands]
        for command in commands:
            match command:
                case Write(segment, blob):
                    if blob is None or time.monotonic() > self._deadline:
                        continue
                    outcome = self._write(command, segment, blob)
                    outcomes.append(outcome)
                    if not outcome.error:
                        changes.append(self._putting(segment, outcome.num_bytes))
                case Update(segments):
                    changes.append(self._updating(segments))
                case Remove(names):
                    removed.extend(names)
                    changes.append(self._deleting(self._unlink(names)))
                case Stop():
                    is_last = True
        error = self._commit(changes, is_removal=bool(removed))
        if error:
            self._stubborn.update(removed)
        for outcome in outcomes:
            if error and not outcome.error:
                # Without its row nobody could use it before the next start.
                segment = outcome.write.segment
                self._unlink([(self._namespace, segment.key)])
                outcome = Outcome(outcome.write, error=error)
            self.outcomes.put(outcome)
        return not is_last

    def _write(self, write: Write, segment: StoredSegment, blob: Blob) -> Outcome:
        path = segment_path(self._folder, self._namespace, segment.key)
        header = encode_header(self._namespace, segment)
        try:
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            num_bytes = write_file(path, header, blob)
        except OSError as error:
            return Outcome(write, error=self._sentence(error, len(header) + blob.nbytes))
        self._stubborn.discard((self._namespace, segment.key))
        return Outcome(write, num_bytes)

    def _unlink(self, names: Sequence[Name]) -> list[Name]:
        """Gives those whose files are gone now."""
        gone: list[Name] = []
        for namespace, key in names:
            try:
                segment_path(self._folder, namespace, key).unlink(missing_ok=True)
            except OSError:
                self._stubborn.add((namespace, key))
            else:
                self._stubborn.discard((namespace, key))
                gone.append((namespace, key))
        return gone

    def _putting(self, segment: StoredSegment, num_bytes: int) -> Callable[[], None]:
        return lambda: self._index.put(self._namespace, segment, num_bytes)

    def _updating(self, segments: Sequence[StoredSegment]) -> Callable[[], None]:
        return lambda: self._index.update(self._namespace, segments)

    def _deleting(self, names: Sequence[Name]) -> Callable[[], None]:
        return lambda: self._index.delete(names)

    def _commit(self, changes: Sequence[Callable[[], None]], *, is_removal: bool) -> str:
        """Gives a sentence for the user, and then the index is as it was, or nothing."""
        try:
            for change in changes:
                change()
            self._index.commit()
            if is_removal:
                self._index.scrub()
        except OSError as error:
            self._index.rollback()
            logger.warning("the index of the chat cache could not be changed: %s", error)
            return self._sentence(error, self.num_index_bytes)
        finally:
            self.num_index_bytes = self._index.num_bytes
        return ""

    def _sentence(self, error: OSError, num_bytes: int) -> str:
        try:
            free = f"{shutil.disk_usage(self._folder).free / 1e6:,.0f} MB are free"
        except OSError:
            free = "the disk does not answer"
        remedy = "make room on this disk"
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "see whether the disk is sound and may be written"
        return (
            f"What was read of conversations could not be kept in {self._folder}"
            f" ({error.strerror}; {num_bytes / 1e6:,.1f} MB were to be written, {free}): {remedy};"
            " until the next start it is kept in memory alone."
        )
