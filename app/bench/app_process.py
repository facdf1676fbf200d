"""The app as a process of its own, in a home that is thrown away."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Self

import app
from app.bench.server_process import ServerProcess
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


class AppProcess(ServerProcess):
    """`inglenook run`. `ready_s` after its start it served."""

    def __init__(self, home: Path, model: str) -> None:
        self.began = perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "run", "--no-open", *model_arguments(model)],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        super().__init__(process, process.stdout)
        self.url = ""
        self.ready_s = 0.0

    def __enter__(self) -> Self:
        # An app that says nothing is ended, and the reading below with it.
        limit = threading.Timer(START_S, self._process.kill)
        limit.start()
        said = []
        try:
            for line in self._output:
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


def model_arguments(model: str) -> list[str]:
    return ["--model", model] if model else []


def new_home() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="inglenook-bench-", ignore_cleanup_errors=True)
