"""What Linux tells about processes that were ended because memory ran out.

memory.events   of our own group of processes (cgroup 2): how many of them the kernel ended
/proc/vmstat    where a group has no such file: how many of all processes
/proc/meminfo   how much is left now, for programs that end others before the kernel has to

Elsewhere, and where nothing can be read, nothing is known.
"""

from pathlib import Path

SHORT_SHARE = 0.02
"""So little of the memory left is no accident."""


def num_memory_kills(root: Path = Path("/")) -> int | None:
    """A counter: only that it rises says something. None: it cannot be read."""
    own = root / "sys" / "fs" / "cgroup" / _group(root) / "memory.events"
    for file in (own, root / "proc" / "vmstat"):
        count = _figure(file, "oom_kill")
        if count is not None:
            return count
    return None


def is_memory_short(root: Path = Path("/")) -> bool:
    """Whether hardly anything is left now."""
    meminfo = root / "proc" / "meminfo"
    total, left = _figure(meminfo, "MemTotal:"), _figure(meminfo, "MemAvailable:")
    return total is not None and left is not None and left < SHORT_SHARE * total


def _group(root: Path) -> str:
    """The path of our own group below the folder of all groups."""
    for line in _lines(root / "proc" / "self" / "cgroup"):
        if line.startswith("0::/"):
            return line.removeprefix("0::/")
    return ""


def _figure(file: Path, name: str) -> int | None:
    """The whole number that stands behind a name."""
    for line in _lines(file):
        found, _, rest = line.partition(" ")
        number = rest.split()[:1]
        if found == name and number and number[0].isdecimal():
            return int(number[0])
    return None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
