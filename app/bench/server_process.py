"""A server as a process of its own, which a benchmark starts and ends."""

import contextlib
import subprocess
from typing import IO, Any

END_S = 20.0


class ServerProcess:
    """Ended with the `with` block. It writes to `output`, which is closed then."""

    def __init__(self, process: "subprocess.Popen[Any]", output: IO[Any]) -> None:
        self._process = process
        self._output = output

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self, *, kill: bool = False) -> None:
        """Ask it to end, or end it as a power cut would; `close` waits for it."""
        (self._process.kill if kill else self._process.terminate)()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.is_running:
            self.end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
            if self.is_running:
                self.end(kill=True)
                self._process.wait()
        self._output.close()
