"""The app as a process of its own, in a home of its own."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from app.owner import TOKEN_HEADER, OwnerAddress

PATIENCE_S = 90.0


class AppProcess:
    """`inglenook run` with an empty or a given home; ended when the `with` block is left."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        self.database = home / "data" / "history.sqlite3"
        environment = {**os.environ, "INGLENOOK_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "run", "--no-open", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.address = self._wait_for_address()

    @property
    def url(self) -> str:
        return self.address.url + "/"

    def activity(self) -> dict[str, int]:
        """What the engine is doing, by the owner's door."""
        request = urllib.request.Request(
            f"{self.address.url}/_app/engine", headers={TOKEN_HEADER: self.address.token}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            activity: dict[str, int] = json.load(response)
        return activity

    def command(self, *arguments: str) -> Any:
        """A command beside the app; what its `--json` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments, "--json"],
            env={**os.environ, "INGLENOOK_HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kill(self) -> None:
        """As if the power went: nothing can be tidied."""
        self.process.kill()
        self.process.wait(10)

    def __enter__(self) -> "AppProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def _wait_for_address(self) -> OwnerAddress:
        note = self.home / "data" / "owner.json"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                assert self.process.stdout is not None
                raise AssertionError(f"the app ended: {self.process.stdout.read()}")
            if note.exists():
                address = OwnerAddress(**json.loads(note.read_text()))
                # A note of an earlier owner may still lie there.
                if address.pid == self.process.pid and address.answers():
                    return address
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the app was not ready within {PATIENCE_S:g} s")
