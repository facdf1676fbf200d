"""The app as a process of its own, in a home that is thrown away."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Self

import app
from engine.errors import EngineError

START_S = 180.0
READY = "Inglenook is ready: "
ROOT = Path(app.__file__).resolve().parent.parent


def environment(home: Path) -> dict[str, str]:
    """For a child that finds our folders, wherever it is started."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "INGLENOOK_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }


class AppProcess:
    """`inglenook run`; ended with the `with` block. `ready_s` after its start it served."""

    def __init__(self, home: Path, model: str) -> None:
        self.began = perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "run", "--no-open", *model_arguments(model)],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.url = ""
        self.ready_s = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self, *, kill: bool = False) -> None:
        """Ask it to end, or end it as a power cut would; `close` waits for it."""
        (self._process.kill if kill else self._process.terminate)()

    def __enter__(self) -> Self:
        # An app that says nothing is ended, and the reading below with it.
        limit = threading.Timer(START_S, self._process.kill)
        limit.start()
        said = []
        try:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                said.append(line.strip())
                if line.startswith(READY):
                    self.ready_s = perf_counter() - self.began
                    self.url = line.removeprefix(READY).strip()
                    return self
        finally:
            limit.cancel()
            if not self.url:
                self.close()
        raise EngineError(f"The app did not start: {' '.join(said) or 'it said nothing'}")

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.is_running:
            self.end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
            if self.is_running:
                self.end(kill=True)
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def model_arguments(model: str) -> list[str]:
    return ["--model", model] if model else []


def new_home() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="inglenook-bench-", ignore_cleanup_errors=True)
