"""`latest.json`, which `inglenook updates` reads where versions are published.

latest.py [FOLDER]    of all archives of this version in FOLDER, whatever system they are for

A build knows only the archives of its own system: bring those of all systems into one folder, and
run this there before it is published.
"""

import hashlib
import json
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from engine_wheel import BuildError
from packaging.version import Version

from app.updates.latest import FILE, Archive, Latest
from app.version import VERSION

DIST = Path(__file__).resolve().parent.parent / "dist"
# The usual one of each system first.
ENDINGS = (r"\.tar\.xz", r"-setup\.exe", r"\.dmg", r"\.deb", r"\.zip")
DEBIAN_SYSTEMS = {"amd64": "linux-x86_64"}


def write_latest(folder: Path, version: str, day: date) -> Path:
    """Raises BuildError where the folder has no archive of this version."""
    if not folder.is_dir():
        raise BuildError(f"{folder} is no folder: name the one with the archives.")
    found = [
        (number, file, system)
        for file in sorted(folder.iterdir())
        for number, ending in enumerate(ENDINGS)
        if (system := system_of(file.name, version, ending))
    ]
    if not found:
        raise BuildError(f"{folder} has no archive of version {version}: make one first.")
    latest = Latest(
        version=Version(version),
        date=day,
        archives=tuple(described(file, system) for _, file, system in sorted(found)),
    )
    written = folder / FILE
    written.write_text(json.dumps(latest.as_json(), indent=1) + "\n", encoding="utf-8")
    return written


def system_of(name: str, version: str, ending: str) -> str:
    """What the archive of this name is for; empty: it is none of this version with this ending."""
    marked = re.escape(version)
    found = re.fullmatch(rf"inglenook-{marked}-((?:linux|macos|windows)-\w+){ending}", name)
    if found:
        return found[1]
    debian = re.fullmatch(rf"inglenook_{marked}_(\w+){ending}", name)
    return DEBIAN_SYSTEMS.get(debian[1], "") if debian else ""


def described(file: Path, system: str) -> Archive:
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    return Archive(name=file.name, num_bytes=file.stat().st_size, sha256=sha256, system=system)


def main() -> int:
    folder = Path(sys.argv[1]) if sys.argv[1:] else DIST
    try:
        print(write_latest(folder, VERSION, datetime.now(UTC).date()))
    except (BuildError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
