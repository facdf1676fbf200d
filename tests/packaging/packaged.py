"""A program as a package brings it, and a person who has nothing else: no Python, no PATH."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.owner import OwnerAddress

PATIENCE_S = 120.0
NOBODY = "/nonexistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """`environment` is all that the program finds. `user` is a number, None: who runs the tests."""

    program: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    prefix: tuple[str, ...] = ()
    """What the program is started with, such as an emulator."""

    def all_environment(self) -> dict[str, str]:
        given = {"PATH": NOBODY, "HOME": str(self.home), "INGLENOOK_HOME": str(self.home / "of it")}
        return {key: value for key, value in {**given, **self.environment}.items() if value}

    def run(self, *arguments: str, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """A command to its end, from the root folder."""
        return subprocess.run(
            [*self.prefix, str(self.program), *arguments],
            cwd="/",
            env=self.all_environment(),
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def ask(self, question: str, *arguments: str) -> Any:
        """What `generate --json` says."""
        done = self.run("generate", question, "--json", "--temperature", "0", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def started(self, *arguments: str) -> Iterator["Started"]:
        """The app as a double click starts it, ended afterwards."""
        with subprocess.Popen(
            [*self.prefix, str(self.program), *arguments],
            cwd="/",
            env=self.all_environment(),
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield Started(process)
            finally:
                end(process)

    def owner(self) -> OwnerAddress:
        """Where the app says that it is reached, once it does."""
        notes = [self.home / "of it" / "data" / "owner.json"]
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for note in notes:
                if note.exists():
                    address = OwnerAddress(**json.loads(note.read_text()))
                    if address.answers():
                        return address
            time.sleep(0.05)
        raise AssertionError(f"no app said within {PATIENCE_S:g} s where it is")


def end(process: "subprocess.Popen[str]") -> None:
    """As the system does when somebody logs off; harmless when it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@dataclass(frozen=True, slots=True)
class Started:
    """A program that runs. What it says is read line by line."""

    process: "subprocess.Popen[str]"

    def says(self, words: str) -> str:
        """The first line with these words. Fails when the program ends before it."""
        assert self.process.stdout is not None
        heard: list[str] = []
        for line in self.process.stdout:
            heard.append(line)
            if words in line:
                return line
        raise AssertionError(f"it ended with {self.process.wait()} and said only {heard}")

    def memory_bytes(self) -> int:
        """Of the program and all that it started, their share of what several have counted."""
        return sum(proportional_bytes(pid) for pid in family(self.process.pid))


def family(pid: int) -> list[int]:
    """A process and all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        below = [int(child) for child in children.read_text().split()]
    except FileNotFoundError:
        return []
    return [pid, *(member for child in below for member in family(child))]


def proportional_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def page(address: OwnerAddress) -> str:
    """The page's text, as a browser of this machine gets it."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{address.url}/", timeout=30) as response:
        content: bytes = response.read()
    return content.decode("utf-8")


def take_away_writing(folder: Path) -> None:
    """As a folder of the system is to everybody but its owner."""
    for place in (folder, *folder.rglob("*")):
        if not place.is_symlink():
            os.chmod(place, place.stat().st_mode & ~0o222)
