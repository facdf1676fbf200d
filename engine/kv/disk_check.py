"""A look at the whole disk tier while nobody uses it: every file read, every row compared."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xxhash import xxh3_64

from engine.kv.disk_folder import INDEX_NAME
from engine.kv.disk_inventory import FoundFile, found_files, reachable, read_header_of, reconcile
from engine.kv.segment import Blob
from engine.kv.segment_file import Header, segment_name, segment_path
from engine.kv.segment_index import (
    IndexDamaged,
    Name,
    SegmentIndex,
    index_files,
    remove_index,
)

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """What was found, or (`repair_disk`) what was removed and what is left."""

    num_segments: int = 0
    """Sound ones of all models."""
    num_bytes: int = 0
    """All that lies in the folder, with the index."""
    num_damaged: int = 0
    """Files whose header or payload is not what was written, and leftovers."""
    num_orphans: int = 0
    """Files without a row, rows without a file, and segments whose beginning is missing."""
    is_index_damaged: bool = False
    is_in_use: bool = False
    """By an app that runs: then only what lies there was counted."""

    @property
    def is_sound(self) -> bool:
        return not (self.num_damaged or self.num_orphans or self.is_index_damaged)


@dataclass(frozen=True, slots=True)
class _Findings:
    report: DiskReport
    damaged: list[str]
    """Names of files."""
    unreachable: list[Name]


def check_disk(folder: Path) -> DiskReport:
    """Change nothing. Takes as long as it takes to read everything. Raises OSError."""
    path = folder / INDEX_NAME
    if not path.exists():
        return _examine(folder, None).report if folder.is_dir() else DiskReport()
    try:
        index = SegmentIndex(path)
    except IndexDamaged:
        return _examine(folder, None).report
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        files = list(found_files(folder))
        return DiskReport(
            num_segments=len(files), num_bytes=_num_bytes(folder, files), is_in_use=True
        )
    try:
        return _examine(folder, index).report
    finally:
        index.close()


def repair_disk(folder: Path) -> DiskReport:
    """Remove what `check_disk` would find fault with, and make the index anew where it must be;
    gives what was found. Raises OSError, with EBUSY while an app uses the folder."""
    path = folder / INDEX_NAME
    if not folder.is_dir():
        return DiskReport()
    try:
        index = SegmentIndex(path) if path.exists() else None
    except IndexDamaged:
        remove_index(path)
        index = None
    try:
        findings = _examine(folder, index)
        if index is None:
            index = SegmentIndex(path)
        for file in findings.damaged:
            (folder / file).unlink(missing_ok=True)
        for name in findings.unreachable:
            segment_path(folder, *name).unlink(missing_ok=True)
        reconcile(folder, index)
        index.commit()
        index.scrub()
    finally:
        if index is not None:
            index.close()
    return findings.report


def _examine(folder: Path, index: SegmentIndex | None) -> _Findings:
    """`index` is None when it is missing or damaged."""
    files = list(found_files(folder))
    headers = {file.name: _verified(file) for file in files}
    sound = [header for header in headers.values() if header is not None]
    damaged = [name for name, header in headers.items() if header is None]
    unreachable = _unreachable(index, sound)
    orphans = {segment_name(*name) for name in unreachable}
    if index is not None:
        rows = {segment_name(row.namespace, row.key) for row in index.files()}
        orphans |= (rows ^ headers.keys()) - set(damaged)
    report = DiskReport(
        num_segments=len(sound),
        num_bytes=_num_bytes(folder, files),
        num_damaged=len(damaged),
        num_orphans=len(orphans),
        is_index_damaged=index is None and bool(files),
    )
    return _Findings(report, damaged, unreachable)


def _unreachable(index: SegmentIndex | None, sound: list[Header]) -> list[Name]:
    """Of each namespace, what does not stand on a first token. Rows know better than headers."""
    unreachable: list[Name] = []
    for namespace in {header.namespace for header in sound}:
        segments = {h.segment.key: h.segment for h in sound if h.namespace == namespace}
        rows = {row.key: row for row in index.segments(namespace)} if index is not None else {}
        segments = {key: rows.get(key, segment) for key, segment in segments.items()}
        reached = {segment.key for segment in reachable(list(segments.values()))}
        unreachable += [(namespace, key) for key in segments if key not in reached]
    return unreachable


def _verified(file: FoundFile) -> Header | None:
    """The header of a file that is sound to its last byte."""
    header = read_header_of(file)
    if header is None:
        return None
    checksum = xxh3_64()
    try:
        for piece in _payload(file.path, header.num_bytes):
            checksum.update(piece.data)
    except OSError:
        return None
    return header if checksum.intdigest() == header.segment.checksum else None


def _payload(path: Path, start: int) -> Iterator[Blob]:
    buffer = np.empty(_READ_BYTES, np.uint8)
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while count := file.readinto(buffer.data):
            yield buffer[:count]


def _num_bytes(folder: Path, files: list[FoundFile]) -> int:
    index = [file for file in index_files(folder / INDEX_NAME) if file.exists()]
    return sum(file.num_bytes for file in files) + sum(file.stat().st_size for file in index)
