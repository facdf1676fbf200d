"""Our own wheel and the engine's: a package brings both, and a source tree makes ours."""

import shutil
import sys
from pathlib import Path

from app.cuda.pip import Hear, Pip
from app.version import VERSION
from engine.errors import InstallationFailed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "wheels"
"""Beside the program of a package."""
SOURCE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "NOTICE",
    "app",
    "engine",
    "grammars",
    "kernels",
)


def brought(program: Path | None = None) -> Path | None:
    """The folder of wheels beside this program; None: there is none, as in a source tree."""
    if program is None:
        if not getattr(sys, "frozen", False):
            return None
        program = Path(sys.executable)
    folder = program.resolve().parent / FOLDER
    return folder if own_wheel(folder) is not None else None


def own_wheel(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob(f"inglenook-{VERSION}-*.whl"))), None)


async def make_own_wheel(pip: Pip, work: Path, hear: Hear) -> Path:
    """From the source tree that runs, in `work`. Raises InstallationFailed."""
    if not (ROOT / "pyproject.toml").is_file():
        raise InstallationFailed(
            f"This Inglenook has no wheel of its own in a folder {FOLDER!r} beside it: install it"
            " again from its package, or use a source tree."
        )
    hear(f"Building Inglenook {VERSION} from {ROOT}")
    source, folder = copy_source(work / "source"), work / FOLDER
    await pip.run("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    wheel = own_wheel(folder)
    if wheel is None:
        raise InstallationFailed(
            f"{ROOT} gives no wheel of Inglenook {VERSION}: bring the tree to one version."
        )
    return wheel


def copy_source(into: Path) -> Path:
    """The tree alone: a build leaves its traces there, and would take in those of an older one."""
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        elif (ROOT / name).is_file():
            into.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, into / name)
    return into
