"""A Python of the system that can make environments: a package brings one without that part."""

import json
import platform
import shutil
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.machine.gpu import Ask, ask_program
from engine.errors import InstallationFailed

VERSIONS = ("3.13", "3.12", "3.11", "3.14")
"""The best known first: torch has wheels for the newest ones last."""
LEAST = (3, 11)
QUESTION = (
    "import json, platform, struct, sys; facts = {'version': sys.version_info[:3],"
    " 'machine': platform.machine(), 'bits': 8 * struct.calcsize('P')}\n"
    "try:\n    import ensurepip, venv; facts['makes'] = True\n"
    "except ImportError: facts['makes'] = False\n"
    "print(json.dumps(facts))"
)


@dataclass(frozen=True, slots=True)
class Python:
    """`command` starts it; arguments follow."""

    command: tuple[str, ...]
    version: str


def find_python(
    ask: Ask = ask_program,
    which: Callable[[str], str | None] = shutil.which,
    system: str = sys.platform,
    own: Sequence[str] | None = None,
) -> Python:
    """The first that is new enough, of this program's architecture, and makes environments.

    `own` is the Python that runs us; a package's cannot. Raises InstallationFailed.
    """
    if own is None:
        own = () if getattr(sys, "frozen", False) else (sys.executable,)
    without_venv = ""
    for command in candidates(which, system, own):
        facts = _facts(ask((*command, "-I", "-c", QUESTION)))
        if facts is None:
            continue
        version, makes = facts
        if makes:
            return Python(command, version)
        without_venv = without_venv or version
    if without_venv:
        raise InstallationFailed(
            f"Python {without_venv} is here, but without its venv module: install it"
            f" ({_remedy(system)}), and try again."
        )
    raise InstallationFailed(
        "This needs a Python of the system, 3.11 or newer and for"
        f" {platform.machine()}, and none was found: install one ({_remedy(system)}), and try"
        " again."
    )


def candidates(
    which: Callable[[str], str | None], system: str, own: Sequence[str]
) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [tuple(own)] if own else []
    if system == "win32":
        launcher = which("py")
        if launcher:
            found += [(launcher, f"-{version}") for version in VERSIONS]
    names = [*(f"python{version}" for version in VERSIONS), "python3", "python"]
    return found + [(path,) for name in names if (path := which(name))]


def _facts(told: str) -> tuple[str, bool] | None:
    """Its version and whether it makes environments; None where it is of no use."""
    try:
        facts = json.loads(told)
        version = tuple(map(int, facts["version"]))
        is_alike = facts["machine"] == platform.machine() and facts["bits"] == 8 * struct.calcsize(
            "P"
        )
        makes = bool(facts["makes"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (".".join(map(str, version)), makes) if version >= LEAST and is_alike else None


def _remedy(system: str) -> str:
    if system == "win32":
        return "`winget install Python.Python.3.13`"
    if shutil.which("apt-get"):
        return "`sudo apt-get install python3-venv`"
    if shutil.which("dnf"):
        return "`sudo dnf install python3.13`"
    return "with your system's package manager"
