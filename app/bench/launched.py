"""A launched app, measured: the splash, the first event of the page, and both after a crash."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from app.bench.app_process import START_S, environment, model_arguments, new_home
from app.bench.server_process import ServerProcess
from app.web.port import bind
from engine.errors import EngineError

POLL_S = 0.002


class LaunchedApp(ServerProcess):
    """`inglenook launch` on a port of its own. `splash_s` after its start something was seen."""

    def __init__(self, home: Path, model: str) -> None:
        with bind(port=0) as free:
            self.port: int = free.getsockname()[1]
        self._note = home / "data" / "owner.json"
        arguments = ["--no-open", "--port", str(self.port), *model_arguments(model)]
        self.began = perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "app.launcher", "launch", *arguments],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        super().__init__(process, process.stdout)
        self.splash_s = 0.0

    def __enter__(self) -> "LaunchedApp":
        try:
            self._wait_for(lambda: self._get("/"), "the splash")
            self.splash_s = perf_counter() - self.began
        finally:
            if not self.splash_s:
                self.close()
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def wait_for_app(self, but: str = "") -> str:
        """Its mark, as soon as it answers; another one than `but`."""

        def mark() -> str:
            found = str(json.loads(self._get("/_app/state") or "{}").get("instance", ""))
            return found if found != but else ""

        return self._wait_for(mark, "the app")

    def crash(self) -> None:
        """End the app as the system does when memory is out; the launcher is left alone."""
        note: dict[str, Any] = json.loads(self._note.read_text(encoding="utf-8"))
        os.kill(int(note["pid"]), signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _get(self, path: str) -> str:
        """Empty as long as nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request("GET", path)
            response = connection.getresponse()
            text = response.read().decode()
            return text if response.status == 200 else ""
        return ""

    def _wait_for(self, look: Callable[[], str], what: str) -> str:
        ends = perf_counter() + START_S
        while perf_counter() < ends and self.is_running:
            if found := look():
                return found
            sleep(POLL_S)
        raise EngineError(f"{what.capitalize()} of a launched app did not come.")


def launch_and_crash(model: str, first_event: Callable[[str], None]) -> dict[str, float]:
    """Seconds in an empty home: `splash`, `usable` (to the first event of the page), and `back`,
    the same from the crash on."""
    with new_home() as home, LaunchedApp(Path(home), model) as app:
        mark = app.wait_for_app()
        first_event(app.url)
        usable = perf_counter() - app.began
        crashed = perf_counter()
        app.crash()
        app.wait_for_app(but=mark)
        first_event(app.url)
        return {"splash": app.splash_s, "usable": usable, "back": perf_counter() - crashed}
