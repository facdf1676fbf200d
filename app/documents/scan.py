"""What lies in a folder of the library now: a walk over names and sizes that opens no file."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__", "$RECYCLE.BIN"})
IGNORED_FILES = re.compile(r"~\$.*|Thumbs\.db|desktop\.ini|Icon\r", re.IGNORECASE)
# Files whose bytes are elsewhere until somebody opens them: Windows' and macOS' marks for that.
RECALLED = 0x1000 | 0x40000 | 0x400000
HIDDEN = 0x2
DATALESS = 0x40000000
MANY = 20
"""A folder with more files than this that is empty all at once is taken for lost, not emptied."""
HASHED_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells without reading that a file is as it was."""

    size: int
    mtime_ns: int


@dataclass(slots=True)
class Sight:
    """What a walk saw. `closed` are folders that could not be looked into: nothing is known of
    what lies in them. `own` are those of Inglenook itself that were left out. `identity` tells
    folders of one path apart, as when a disk is missing."""

    identity: str
    files: dict[str, Stamp] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Changes:
    """From what is known of a root to what was seen in it."""

    new: Mapping[str, Stamp]
    changed: Mapping[str, Stamp]
    gone: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def look(root: Path, own: Sequence[str] = ()) -> Sight | None:
    """Without what lies in `own`, whose links are resolved. Blocks. None: there is nothing at this
    path now."""
    try:
        if not is_there(root):
            return None
        found = root.stat()
    except OSError:
        return None
    sight = Sight(_identity(found))
    if is_own(root, own):
        return sight
    if stat.S_ISREG(found.st_mode):
        sight.files[str(root)] = _stamp(found)
    elif stat.S_ISDIR(found.st_mode):
        for path, stamp in _walk(root, sight, own):
            sight.files[path] = stamp
    return sight


def is_there(root: Path) -> bool:
    """Whether what lies at this path can be looked at."""
    try:
        if not stat.S_ISDIR(root.stat().st_mode):
            return True
        with os.scandir(root):
            return True
    except OSError:
        return False


def is_away(root: Path, identity: str) -> bool:
    """Whether what was known at this path is out of reach, as far as one look tells: it is missing,
    or another folder lies there that is empty. Blocks."""
    try:
        found = root.stat()
        if not stat.S_ISDIR(found.st_mode):
            return False
        with os.scandir(root) as entries:
            is_empty = next(entries, None) is None
    except OSError:
        return True
    return is_empty and identity not in ("", _identity(found))


def is_lost(sight: Sight | None, identity: str, num_known: int) -> bool:
    """Whether the files that were known are rather out of reach than deleted."""
    if sight is None:
        return True
    is_empty = num_known > 0 and not sight.files
    return is_empty and (sight.identity != identity or num_known > MANY)


def compare(known: Mapping[str, Stamp], sight: Sight) -> Changes:
    new = {path: stamp for path, stamp in sight.files.items() if path not in known}
    changed = {
        path: stamp for path, stamp in sight.files.items() if path in known and known[path] != stamp
    }
    gone = frozenset(
        path
        for path in known.keys() - sight.files.keys()
        if not any(is_under(path, folder) for folder in sight.closed)
    )
    return Changes(new, changed, gone)


def is_under(path: str, place: str) -> bool:
    """Whether `path` is `place` or lies in it."""
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


def is_own(path: str | Path, own: Sequence[str]) -> bool:
    """Whether it lies in one of these folders, wherever its links lead."""
    real = os.path.realpath(path)
    return any(is_under(real, place) for place in own)


def is_ignored(path: Path, root: Path) -> bool:
    """Whether a walk from `root` would never come to `path`, by its names."""
    parts = path.relative_to(root).parts
    return any(_is_ignored_folder(part) for part in parts) or _is_ignored_file(parts[-1])


def sha256_of(path: str) -> str:
    """Blocks. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(HASHED_AT_ONCE):
            digest.update(block)
    return digest.hexdigest()


def stamp_of(path: str) -> Stamp:
    """Raises OSError, also for what is no file any more."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise FileNotFoundError(f"{path} is no file")
    return _stamp(found)


def _walk(root: Path, sight: Sight, own: Sequence[str]) -> Iterator[tuple[str, Stamp]]:
    inside = os.path.realpath(root)
    # As the walk, which follows no link, would come to them.
    left_out = {
        os.path.join(root, os.path.relpath(place, inside))
        for place in own
        if is_under(place, inside)
    }
    folders = [str(root)]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path in left_out:
                            sight.own.append(entry.path)
                        elif not _is_ignored_folder(entry.name):
                            folders.append(entry.path)
                    elif not _is_ignored_file(entry.name):
                        stamp = _file_stamp(entry, inside, own)
                        if stamp is not None:
                            yield entry.path, stamp
        except OSError:
            sight.closed.append(folder)


def _file_stamp(entry: os.DirEntry[str], inside: str, own: Sequence[str]) -> Stamp | None:
    """None: it is no file, or not one of this folder."""
    try:
        if entry.is_symlink() and (
            is_own(entry.path, own) or not is_under(os.path.realpath(entry.path), inside)
        ):
            return None
        found = entry.stat()
    except OSError:
        # It went while it was looked at, or the link leads nowhere.
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    attributes = getattr(found, "st_file_attributes", 0)
    flags = getattr(found, "st_flags", 0)
    if attributes & (RECALLED | HIDDEN) or flags & DATALESS:
        return None
    return _stamp(found)


def _identity(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns)


def _is_ignored_folder(name: str) -> bool:
    return name.startswith(".") or name in IGNORED_FOLDERS


def _is_ignored_file(name: str) -> bool:
    return name.startswith(".") or IGNORED_FILES.fullmatch(name) is not None
