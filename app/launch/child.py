"""The app's process, as the launcher sees it: started with orders, heard, ended."""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.launch.link import DOOR, END, Doing, Orders
from app.launch.memory_kills import is_memory_short, num_memory_kills

PATIENCE_S = 15.0
"""What an app may take to keep what is being written."""
KEPT_LOG_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the app, as `Link` says it."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The process is gone. `code` is as in Popen.returncode, `log` the end of what it wrote.
    `memory_ran_out`: the system says so of itself, of the time in which the process ran."""

    code: int
    doing: Doing = Doing()
    failed: str = ""
    fault: str = ""
    log: str = ""
    memory_ran_out: bool = False


class Child:
    """Its methods belong to the launcher's thread. `tell` is called in another one, with every
    `Said` in its order and last with the `End`."""

    def __init__(
        self,
        command: Sequence[str],
        sock: socket.socket,
        orders: Orders,
        log: Path,
        tell: Callable[[Said | End], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is added to ours."""
        self._log = log
        self._tell = tell
        self._end = End(code=0)
        self._kills_before = num_memory_kills()
        keep_short(log)
        with open(log, "ab") as stderr:
            self._log_start = stderr.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # A failed assertion in ggml would start a debugger, which takes seconds.
                env={**os.environ, "GGML_NO_BACKTRACE": "1", **(environment or {})},
                **_handed_on(sock),
            )
        self._order(replace(orders, socket=_number_of(sock, self._process.pid)))
        threading.Thread(target=self._hear, name="app", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def give_door(self) -> None:
        """From now on it alone answers on the socket."""
        self._write(DOOR)

    def end(self) -> None:
        """Ask it to end, and see to it that it does."""
        self._write(END)
        threading.Thread(target=self._insist, name="end of the app", daemon=True).start()

    def _insist(self) -> None:
        for end in (self._process.terminate, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
                return
            end()

    def _order(self, orders: Orders) -> None:
        self._write(json.dumps(asdict(orders)))

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        # It may be gone already; then its end says so.
        with contextlib.suppress(OSError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = _understood(line)
            if said is None:
                continue
            self._note(said)
            self._tell(said)
        code = self._process.wait()
        has_risen = num_memory_kills() != self._kills_before
        self._tell(
            replace(
                self._end,
                code=code,
                log=self._log_piece(),
                memory_ran_out=has_risen or is_memory_short(),
            )
        )

    def _note(self, said: Said) -> None:
        match said:
            case Said("doing", dict() as doing):
                self._end = replace(self._end, doing=Doing(**doing))
            case Said("failed", str() as sentence):
                self._end = replace(self._end, failed=sentence)
            case Said("fault", str() as what):
                self._end = replace(self._end, fault=what)

    def _log_piece(self) -> str:
        """What this process wrote; of much, the end, where a crash stands."""
        try:
            with open(self._log, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - 100_000))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""


def own_command() -> tuple[str, ...]:
    """How this program is started once more; arguments follow."""
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    return (sys.executable, "-m", "app.launcher")


def keep_short(log: Path) -> None:
    """Begin a new file when the old one is long; the one before stays beside it."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > KEPT_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    with contextlib.suppress(OSError):
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600))


def _handed_on(sock: socket.socket) -> dict[str, Any]:
    if sys.platform == "win32":
        return no_console()
    return {"pass_fds": (sock.fileno(),)}


def no_console() -> dict[str, Any]:
    """What keeps a process of ours from opening a console where we have none."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW if sys.__stdout__ is None else 0}
    return {}


def as_stranger() -> dict[str, Any]:
    """What a process of ours is started with that opens a stranger's file: nothing of our settings,
    with a key among them, and no console."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("INGLENOOK_")
    }
    return {"env": environment, **no_console()}


def _number_of(sock: socket.socket, pid: int) -> int | str:
    if sys.platform == "win32":
        return base64.b64encode(sock.share(pid)).decode()
    return sock.fileno()


def _understood(line: bytes) -> Said | None:
    """None for what was not meant for us."""
    try:
        ((name, value),) = json.loads(line).items()
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    return Said(name, value)
