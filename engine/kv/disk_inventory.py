"""What lies in the folder of the disk tier, and how files and index are made to agree.

    file and row    kept, when the file is as long as the row says
    row, no file    the row goes: the process ended between the two halves of a removal
    file, no row    taken in from its header: it ended between the two halves of a write
    no parent       goes: its tokens cannot be reached

Payloads are not read here. A bad one is found when it is wanted, and removed then.
"""

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from engine.kv.disk import StoredSegment
from engine.kv.segment_file import (
    PART_SUFFIX,
    SUFFIX,
    Header,
    namespace_folder,
    read_header,
    segment_name,
)
from engine.kv.segment_index import IndexedFile, SegmentIndex

MAX_UNUSED_S = 30 * 86400.0

_NAMESPACE = re.compile("[0-9a-f]{16}")
_FANOUT = re.compile("[0-9a-f]{2}")
_FILE = re.compile(f"[0-9a-f]{{32}}({SUFFIX}|{PART_SUFFIX})")


@dataclass(frozen=True, slots=True)
class FoundFile:
    folder: Path
    name: str
    """As `segment_name` has it; that of a leftover ends otherwise."""
    num_bytes: int
    modified: float
    """Seconds since the epoch."""

    @property
    def path(self) -> Path:
        return self.folder / self.name


def namespace_folders(folder: Path) -> list[Path]:
    """One of each model that has used this folder. Raises OSError."""
    return [each for each in folder.iterdir() if _NAMESPACE.fullmatch(each.name) and each.is_dir()]


def found_files(folder: Path) -> Iterator[FoundFile]:
    """Every segment's file, and what interrupted writes left. Raises OSError."""
    for namespace in namespace_folders(folder):
        for fanout in os.scandir(namespace):
            if not (_FANOUT.fullmatch(fanout.name) and fanout.is_dir()):
                continue
            place = f"{namespace.name}/{fanout.name}"
            for entry in os.scandir(fanout):
                if _FILE.fullmatch(entry.name):
                    # A file may go away while others are looked at.
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        name = f"{place}/{entry.name}"
                        yield FoundFile(folder, name, status.st_size, status.st_mtime)


def remove_unused(folder: Path, keep: bytes, now: float) -> None:
    """Drop what belongs to models that nobody has loaded for a month."""
    for each in namespace_folders(folder):
        is_kept = each == namespace_folder(folder, keep)
        if not is_kept and now - each.stat().st_mtime > MAX_UNUSED_S:
            shutil.rmtree(each, ignore_errors=True)


def reconcile(folder: Path, index: SegmentIndex) -> list[IndexedFile]:
    """Make files and rows agree; gives what there is, the least recently used first.

    The changes of the index are not committed. Raises OSError.
    """
    found = {each.name: each for each in found_files(folder)}
    gone: list[IndexedFile] = []
    for row in index.files():
        file = found.pop(segment_name(row.namespace, row.key), None)
        if file is None:
            gone.append(row)
        elif file.num_bytes != row.num_bytes:
            file.path.unlink(missing_ok=True)
            gone.append(row)
    index.delete((row.namespace, row.key) for row in gone)
    for file in found.values():
        header = read_header_of(file)
        if header is None:
            file.path.unlink(missing_ok=True)
        else:
            segment = replace(header.segment, last_used=file.modified)
            index.put(header.namespace, segment, file.num_bytes)
    return index.files()


def read_header_of(file: FoundFile) -> Header | None:
    """None: damaged, or not the file that should lie in this place."""
    if file.name.endswith(PART_SUFFIX):
        return None
    try:
        header = read_header(file.path)
    except OSError:
        return None
    if header is None or segment_name(header.namespace, header.segment.key) != file.name:
        return None
    return header


def reachable(segments: Sequence[StoredSegment]) -> list[StoredSegment]:
    """Those that can be reached from the first token of a conversation, parents first."""
    children: dict[bytes, list[StoredSegment]] = defaultdict(list)
    for segment in segments:
        children[segment.parent_key].append(segment)
    reached = [root for root in children[b""] if root.start == 0]
    for parent in reached:
        # The list grows while it is walked; a child that leaves a hole is as bad as no parent.
        end = parent.start + len(parent.token_ids)
        reached += [each for each in children[parent.key] if parent.start < each.start <= end]
    return reached
