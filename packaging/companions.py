"""The wheels beside the program: what `inglenook cuda install` puts into an environment of its own.

Ours, and the engine's as packages carry it, so that nobody needs a compiler for the graphics card.
The environment is for NVIDIA cards, so a Mac's package has none of them.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from engine_wheel import BuildError

from app.cuda.wheels import FOLDER, copy_source, own_wheel


def lay_companions(program: Path, engine: Path, work: Path) -> list[Path]:
    """Put both into a folder beside `program`. Raises BuildError."""
    if sys.platform == "darwin":
        return []
    folder = program.parent / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copyfile(engine, folder / engine.name)
    return [make_own_wheel(folder, work), folder / engine.name]


def make_own_wheel(folder: Path, work: Path) -> Path:
    """Built from a copy: a build takes in what an older one left in the tree."""
    shutil.rmtree(work, ignore_errors=True)
    source = copy_source(work / "source")
    log = work / "wheel.log"
    common = ["--no-deps", "--no-build-isolation", "--no-color", "--progress-bar=off"]
    command = [sys.executable, "-m", "pip", "wheel", *common, "--wheel-dir", str(folder)]
    with log.open("wb") as output:
        ended = subprocess.run([*command, str(source)], stdout=output, stderr=output)
    wheel = own_wheel(folder)
    if ended.returncode or wheel is None:
        raise BuildError(f"The wheel of Inglenook could not be built: see {log}.")
    return wheel
