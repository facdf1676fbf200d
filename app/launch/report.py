"""What can be sent to somebody who is asked for help: the machine, the crashes, the warnings.

Nothing that was said is in it: of each log only lines of a known kind are taken, and of a warning
only what our own code says. What is left is gone through once more for names, places and keys.
"""

import json
import os
import platform
import re
from pathlib import Path

from app.launch.crash import Crash, telling_lines
from app.paths import Paths
from app.redaction import redact, secrets_of
from app.version import VERSION

MOST_LINES = 60
MOST_CRASHES = 5
LONGEST_LINE = 300
TAIL_BYTES = 200_000
LOGGED = re.compile(
    r"^(?P<when>[\d-]{10} [\d:]{8}),\d+ (?P<level>[A-Z]+) (?P<name>[\w.]+): (?P<said>.*)"
)
OURS = ("app.", "engine.")
# What stands in quotation marks may be a person's own words.
QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|‘[^’]*’")


def crash_report(paths: Paths) -> str:
    """The whole text. Of a home that cannot be read it says what it can."""
    crashes = [line for crash in kept_crashes(paths.crashes) for line in _told(crash)]
    warnings = warning_lines(_tail(paths.logs / "inglenook.log"))[-MOST_LINES:]
    native = telling_lines(_tail(paths.native_log))
    parts = [
        "Inglenook report",
        "",
        *machine_lines(),
        "",
        "Crashes, the newest first:",
        *(crashes or ["  none"]),
        "",
        "Warnings:",
        *(warnings or ["  none"]),
        "",
        "Native log:",
        *(native or ["  nothing"]),
    ]
    return redact("\n".join(parts), secrets_of(paths)) + "\n"


def kept_crashes(file: Path) -> list[Crash]:
    """The newest first; none from a file that is missing or damaged."""
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        return [Crash.from_json(each) for each in given][:MOST_CRASHES]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def keep_crash(file: Path, crash: Crash) -> None:
    """Put it in front of the others. Raises OSError."""
    kept = [crash, *kept_crashes(file)][:MOST_CRASHES]
    text = json.dumps([each.as_json() for each in kept], indent=1)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
        written.write(text)


def machine_lines() -> list[str]:
    return [
        f"Inglenook {VERSION}, Python {platform.python_version()}",
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        f"{os.cpu_count()} processors",
    ]


def warning_lines(log: str) -> list[str]:
    """Our own words as they are, and of others only who spoke; kinds of errors and frames."""
    found: list[str] = []
    for line in log.splitlines():
        logged = LOGGED.match(line)
        if logged is None:
            found += telling_lines(line)
            continue
        said = QUOTED.sub("…", logged["said"]) if logged["name"].startswith(OURS) else "…"
        head = f"{logged['when']} {logged['level']} {logged['name']}"
        found.append(f"{head}: {said}"[:LONGEST_LINE])
    return found


def _told(crash: Crash) -> list[str]:
    lines = [f"  {line}" for line in crash.lines]
    return [f"- {crash.when} {crash.sentence} Suspect: {crash.suspect.value}.", *lines]


def _tail(file: Path) -> str:
    try:
        with open(file, "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""
