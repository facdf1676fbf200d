"""The engine that packages carry: built once for all processors, and kept until its inputs change.

engine_wheel.py [--no-vision]     builds it if need be, and prints where it lies
"""

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from engine_build import INCLUDED, PROJECT_INCLUDE, build_environment, portable_arguments

LOCK = Path(__file__).resolve().parent / "requirements" / "app.lock"
CACHE = Path(platformdirs.user_cache_dir("inglenook-build", appauthor=False))
BUILD_CORE_MINUTES = 14
GRANT = re.compile(r"unencumbered software|Permission is hereby granted|Public Domain\s*$", re.M)
# For llama.cpp's command-line library, which is left out.
NOT_LINKED = ("cpp-httplib",)


class BuildError(Exception):
    """A package cannot be made; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class EngineWheel:
    """`licences`: the texts that the wheel itself leaves out, named as their folders are."""

    wheel: Path
    licences: Path


def locked_entry(name: str) -> str:
    """The lines of the app's lock that name this package, its version and its hashes."""
    found = re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", LOCK.read_text(), re.M | re.S)
    if found is None:
        raise BuildError(f"{LOCK} does not lock {name}: write it anew with `make lock`.")
    return found.group()


def inputs(vision: bool) -> str:
    """A digest of all that the wheel is made from; the same inputs need no second build."""
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout
    arguments = portable_arguments(Path("source"), Path("build"), vision=vision)
    # Where this checkout lies is no input.
    settings = [argument for argument in arguments if str(PROJECT_INCLUDE) not in argument]
    facts = [locked_entry("llama-cpp-python"), *settings, compiler]
    facts += [each.read_text() for each in INCLUDED]
    facts += [platform.platform(terse=True), platform.machine()]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


def engine_wheel(vision: bool = True) -> EngineWheel:
    """The wheel of these inputs, built if it is not kept yet. Raises BuildError."""
    folder = CACHE / inputs(vision)
    kept = EngineWheelFolder(folder)
    if kept.wheel() is None:
        folder.mkdir(parents=True, exist_ok=True)
        kept.build(vision)
    wheel = kept.wheel()
    assert wheel is not None
    return EngineWheel(wheel, kept.licences)


class EngineWheelFolder:
    """The folder of one set of inputs. An interrupted build goes on where it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source"
        self.building = folder / "build"
        self.licences = folder / "licences"

    def wheel(self) -> Path | None:
        return next(iter(self.folder.glob("*.whl")), None)

    def build(self, vision: bool) -> None:
        log = self.folder / "build.log"
        if not self.source.exists():
            self._fetch_source(log)
        minutes = f"about {BUILD_CORE_MINUTES} minutes of one core"
        print(
            f"Building the engine for every processor, {minutes} ...", file=sys.stderr, flush=True
        )
        made = self.folder / "made"
        arguments = portable_arguments(self.source, self.building, vision=vision)
        environment = build_environment(arguments) | {"SKBUILD_BUILD_DIR": str(self.building)}
        self._pip(log, environment, "wheel", "--wheel-dir", str(made), str(self.source))
        self._keep_licences()
        (wheel,) = made.glob("*.whl")
        # Last of all: a wheel in its place is a finished one.
        wheel.replace(self.folder / wheel.name)
        for folder in (self.source, self.building, made):
            shutil.rmtree(folder)

    def _fetch_source(self, log: Path) -> None:
        entry = self.folder / "engine.lock"
        entry.write_text(locked_entry("llama-cpp-python"))
        only = ("--no-binary", "llama-cpp-python", "--require-hashes", "-r", str(entry))
        fetched = self.folder / "fetched"
        self._pip(log, build_environment([]), "download", *only, "--dest", str(fetched))
        (archive,) = fetched.glob("*.tar.gz")
        unpacked = self.folder / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(archive) as file:
            file.extractall(unpacked, filter="data")
        (source,) = unpacked.iterdir()
        source.replace(self.source)
        shutil.rmtree(fetched)

    def _keep_licences(self) -> None:
        """llama.cpp's, and those of what it has taken in; the wheel has the bindings' alone."""
        shutil.rmtree(self.licences, ignore_errors=True)
        self.licences.mkdir()
        for name, text in vendored_licences(self.source / "vendor" / "llama.cpp").items():
            (self.licences / f"{name}.txt").write_text(text, encoding="utf-8")

    def _pip(self, log: Path, environment: dict[str, str], action: str, *arguments: str) -> None:
        common = ("--no-deps", "--no-build-isolation", "--no-color", "--progress-bar=off")
        command = [sys.executable, "-m", "pip", action, *common, *arguments]
        with log.open("ab") as output:
            ended = subprocess.run(command, env=environment, stdout=output, stderr=output)
        if ended.returncode:
            raise BuildError(
                f"The engine could not be built (`pip {action}` ended with {ended.returncode}):"
                f" see {log}, and run the same command again to go on."
            )


def vendored_licences(project: Path) -> dict[str, str]:
    """llama.cpp's licence and those of what it has taken in, by name.

    A header alone in its folder says its licence in a comment, at its beginning or its end.
    """
    found = {"llama.cpp": _read(project / "LICENSE")}
    found["nlohmann"] = _read(project / "licenses" / "LICENSE-jsonhpp")
    taken_in = project / "vendor"
    for file in sorted(taken_in.rglob("*")):
        folder = file.parent.relative_to(taken_in)
        if folder.parts[:1] in ((), *((name,) for name in NOT_LINKED)):
            continue
        if file.name.startswith("LICENSE"):
            found["-".join(folder.parts)] = _read(file)
        elif file.suffix in (".h", ".c") and not list(file.parent.glob("LICENSE*")):
            comments = re.findall(r"/\*.*?\*/", _read(file), re.DOTALL)
            said = [comment for comment in comments if GRANT.search(comment)]
            if said:
                found["-".join(folder.parts)] = said[-1]
    return found


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def main() -> int:
    try:
        print(engine_wheel(vision="--no-vision" not in sys.argv[1:]).wheel)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
