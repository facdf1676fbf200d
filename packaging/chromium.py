"""Sees to it that the tests have a Chromium: an installed one, Playwright's, or the system's."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.chromium import find_chromium  # noqa: E402

SILENCE_S = 60
SYSTEM_LIMIT_S = 900


def run_while_it_talks(command: list[str], silence_s: float) -> None:
    """Run a command, ended when it has said nothing for so long: it may wait for a dead host."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "NONINTERACTIVE": "1"},
    ) as process:
        assert process.stdout is not None
        output = process.stdout.fileno()
        heard = threading.Event()
        ended = threading.Event()

        def watch() -> None:
            while not ended.is_set():
                if not heard.wait(silence_s):
                    process.kill()
                    return
                heard.clear()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        while os.read(output, 4096):
            heard.set()
        ended.set()
        heard.set()


def system_commands() -> list[list[str]]:
    """How this system's own package comes, if that needs no password."""
    if sys.platform == "darwin":
        return [["brew", "install", "--cask", "chromium"]] if shutil.which("brew") else []
    if not shutil.which("apt-get"):
        return []
    sudo: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            return []
        if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode:
            return []
        sudo = ["sudo", "-n"]
    return [
        [*sudo, "apt-get", "update"],
        [*sudo, "apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ]


def main() -> int:
    if find_chromium():
        return 0
    print("Fetching a Chromium for the browser tests, 1 to 3 minutes ...", flush=True)
    run_while_it_talks([sys.executable, "-m", "playwright", "install", "chromium"], SILENCE_S)
    find_chromium.cache_clear()
    commands = [] if find_chromium() else system_commands()
    if commands:
        print("Playwright has none for here: installing the system's package ...", flush=True)
    for command in commands:
        run_while_it_talks(command, SYSTEM_LIMIT_S)
        find_chromium.cache_clear()
    if find_chromium():
        return 0
    print(
        "The browser tests need a Chromium and none could be installed: install Chromium or Chrome"
        " yourself, or name one with CHROMIUM=/path/to/it; until then they fail.",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
