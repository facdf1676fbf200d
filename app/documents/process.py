"""The reading process from outside: started as our own program, told, heard, watched and ended."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psutil

from app.documents.command import COMMAND
from app.launch.child import as_stranger, own_command

MOST_LINE = 64_000_000
"""Bytes of one answer: whoever reads a stranger's file may have become somebody else."""
PIECE_BYTES = 1_000_000
PATIENCE_S = 5.0
BEHIND = 5
"""So much nicer than the app it is: of a core that both want a chat has three quarters, and the
limits by the clock, which allow four times the processor's, still hold."""


class ParserProcess:
    """Its blocking methods belong to the thread of a `Reader`; the rest may be called while one of
    them waits."""

    def __init__(self, command: Sequence[str] = ()) -> None:
        """Raises OSError."""
        self._process = subprocess.Popen(
            command or (*own_command(), COMMAND),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **as_stranger(),
        )
        self._seen = psutil.Process(self._process.pid)
        self._stand_behind()
        self.num_read = 0

    def _stand_behind(self) -> None:
        """Let the app, in which somebody may be waiting for an answer, go first."""
        with contextlib.suppress(psutil.Error):
            if sys.platform == "win32":
                self._seen.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
            else:
                self._seen.nice(min(19, psutil.Process().nice() + BEHIND))

    def send(self, order: Mapping[str, Any], pieces: Callable[[], Iterator[bytes]]) -> bool:
        """Blocks until it has the order and the file. False: it is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            for piece in pieces():
                self._process.stdin.write(piece)
            self._process.stdin.flush()
        except OSError:
            # Windows has other words than a broken pipe for it.
            return False
        return True

    def receive(self) -> dict[str, Any] | None:
        """What it says next. Blocks. None: it is gone, or says what makes no sense."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline(MOST_LINE)
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return said if isinstance(said, dict) else None

    def receive_bytes(self, size: int) -> bytes | None:
        """What it sends after a line. Blocks. None: it is gone before all of them."""
        assert self._process.stdout is not None
        data = bytearray()
        while piece := self._process.stdout.read(min(PIECE_BYTES, size - len(data))):
            data += piece
        return bytes(data) if len(data) == size else None

    def memory_bytes(self) -> int:
        with contextlib.suppress(psutil.Error):
            return int(self._seen.memory_info().rss)
        return 0

    def processor_seconds(self) -> float:
        with contextlib.suppress(psutil.Error):
            times = self._seen.cpu_times()
            return float(times.user + times.system)
        return 0.0

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        """Close what leads to it, and see to it that it is gone. Blocks. Returns its exit code as
        in Popen.returncode."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
