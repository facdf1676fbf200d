"""A launcher as a process of its own, with an app of ours or the real one behind it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# The real app starts twice in it, on a machine that may be busy.
PATIENCE_S = 240.0
LAUNCH = """
import json, sys
from app.launcher import launch
sys.exit(launch(sys.argv[2:], command=json.loads(sys.argv[1])))
"""
ROOT = Path(__file__).parent.parent
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Launched:
    """Ended when the `with` block is left. `command` starts its app; empty: the real one."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        opens: bool = False,
        **more: Any,
    ) -> None:
        self.home = home
        self.began = time.monotonic()
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        usual = {"INGLENOOK_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths)}
        program = [sys.executable, "-c", LAUNCH, json.dumps(list(command))]
        if not opens:
            program.append("--no-open")
        self.process = subprocess.Popen(
            [*program, *arguments],
            env={**os.environ, **usual, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **more,
        )
        self.port = 0

    def __enter__(self) -> "Launched":
        note = self.home / "data" / "launcher.json"
        self.port = self.wait_for(lambda: _port_of(note, self.process.pid), "a note")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        """Never refused: that is what a launcher is for."""
        return self._ask(urllib.request.Request(f"{self.url}{path}"))

    def press(self, path: str) -> int:
        """As a button of the page does."""
        request = urllib.request.Request(
            f"{self.url}{path}", method="POST", headers={"Origin": self.url}
        )
        return self._ask(request)[0]

    def _ask(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with OPENER.open(request, timeout=PATIENCE_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (ConnectionResetError, http.client.IncompleteRead):
            # It died with our request in its hands, as a page sees it, too.
            return 0, ""

    def state(self) -> dict[str, Any]:
        status, text = self.get("/_app/state")
        state: dict[str, Any] = json.loads(text) if status == 200 else {}
        return state

    def wait_for(self, look: Callable[[], T | None], what: str) -> T:
        """The first true value. Fails with what the launcher said when it ends instead."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if value := look():
                return value
            if self.process.poll() is not None:
                assert self.process.stdout is not None
                raise AssertionError(f"the launcher ended: {self.process.stdout.read()}")
            time.sleep(0.02)
        raise AssertionError(f"{what} did not come within {PATIENCE_S:g} s")

    def until_ready(self, but: str = "") -> str:
        """The mark of the app that answers, which is another one than `but`."""

        def instance() -> str:
            found = self.state().get("instance", "")
            return found if found != but else ""

        return self.wait_for(instance, "the app")

    def until_problem(self) -> dict[str, Any]:
        return self.wait_for(lambda: self.state().get("problem", {}), "a problem")

    def end(self) -> tuple[int, str]:
        """Its code and what it said, once it has ended by itself."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out


def _port_of(note: Path, pid: int) -> int:
    try:
        found = json.loads(note.read_text())
    except (OSError, ValueError):
        return 0
    return int(found["port"]) if found["pid"] == pid else 0
