"""Freezes the app: a folder with the program, its Python, and all that it needs.

freeze.py INTO [--engine FOLDER]    FOLDER: where another llama_cpp than the installed one lies
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import traces
from engine_wheel import BuildError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True, slots=True)
class Frozen:
    """`folder` holds the program. `parts` are the names in the bundle with their sources, `engine`
    is where another engine than the installed one was taken from."""

    folder: Path
    parts: tuple[tuple[str, str], ...]
    engine: Path | None = None

    def search_path(self) -> list[str]:
        """Where the distributions lie that it was made from, the first one first."""
        return [*([] if self.engine is None else [str(self.engine)]), *sys.path]

    @property
    def program(self) -> Path:
        return self.folder / ("inglenook.exe" if os.name == "nt" else "inglenook")


def freeze(into: Path, engine: Path | None = None) -> Frozen:
    """Make `into`/inglenook. Raises BuildError with the end of PyInstaller's log."""
    work = into / "work"
    work.mkdir(parents=True, exist_ok=True)
    log = work / "freeze.log"
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=WARN"]
    command += ["--distpath", str(into), "--workpath", str(work), str(HERE / "inglenook.spec")]
    with log.open("w", encoding="utf-8") as output:
        ended = subprocess.run(
            command,
            cwd=work,
            env=environment(work, engine),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    if ended.returncode:
        last = log.read_text(encoding="utf-8").strip().splitlines()[-15:]
        raise BuildError("\n".join([*last, f"PyInstaller failed; all of its words are in {log}."]))
    folder = into / "inglenook"
    traces.clean_binaries(folder)
    # PyInstaller puts the files of a spec into a folder of the spec's name.
    manifest = json.loads((work / "inglenook" / "manifest.json").read_text(encoding="utf-8"))
    return Frozen(folder, tuple((name, source) for name, source in manifest), engine)


def environment(work: Path, engine: Path | None) -> dict[str, str]:
    """Another engine comes before the installed one, by the path on which all are looked for."""
    paths = [*([] if engine is None else [str(engine)]), str(ROOT), str(HERE)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYINSTALLER_CONFIG_DIR": str(work / "pyinstaller"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("into", type=Path)
    parser.add_argument("--engine", type=Path)
    options = parser.parse_args()
    try:
        print(freeze(options.into.absolute(), options.engine).program)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
