"""The app's end of the line to its launcher: standard input and output of its process.

    launcher -> app    one line of orders; `door` when the socket is the app's alone; `end`, or the
                       end of the line, which both mean: end
    app -> launcher    lines of JSON, each with one name: doing, ready, failed, fault, ask

An app that is ready waits for the door, and meanwhile connections wait for it. If both answered,
even for a moment, a page would get one half of itself and be put off with the other.

What libraries write to standard output goes to standard error from then on, which is the log.
"""

import base64
import faulthandler
import json
import os
import signal
import socket
import sys
import threading
from dataclasses import asdict, dataclass
from typing import Any, Self

DOOR = "door"
END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the app is told at its start. `socket` is a file's number, or what Windows shares;
    `crash` is the sentence about why it was started again, `note` another one that the user should
    read; either may be empty."""

    socket: int | str = 0
    crash: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What the app is at, for whoever asks after a crash. Nothing of what was said is in it."""

    page: bool = False
    """Whether it can be seen."""
    model: str = ""
    is_loading: bool = False
    answering: str = ""
    """"reading" or "writing", or empty."""
    waiting: str = ""
    """A sentence: what holds it up."""


class Link:
    """Owned by the event loop of the app; only `_listen` is another thread."""

    def __init__(self, orders: Orders, sock: socket.socket, output: int) -> None:
        self.orders = orders
        self.socket = sock
        self._output = output
        self._told = Doing()
        self._door = threading.Event()

    @classmethod
    def take(cls) -> Self:
        """Read the orders. Raises ValueError or OSError when there is no launcher at the line."""
        # The launcher has it, so that this process cannot say more on it by accident.
        output = os.dup(1)
        os.dup2(2, 1)
        faulthandler.enable(file=2, all_threads=True)
        orders = Orders(**json.loads(_line()))
        sock = _socket_of(orders.socket)
        # Whatever this process starts has no business on it.
        sock.set_inheritable(False)
        link = cls(orders, sock, output)
        threading.Thread(target=link._listen, name="launcher", daemon=True).start()
        return link

    def ready(self, url: str) -> None:
        """Ask for the door."""
        self._say("ready", url)

    @property
    def has_door(self) -> bool:
        """Whether nobody else answers on the socket any more."""
        return self._door.is_set()

    def failed(self, sentence: str) -> None:
        """The app ends now, and this is why."""
        self._say("failed", sentence)

    def fault(self, what: str) -> None:
        """The engine is dead: the app ends now and wants to be started again."""
        self._say("fault", what)

    def ask(self, wish: str) -> None:
        """One of `Wish`."""
        self._say("ask", wish)

    def tell(self, doing: Doing) -> None:
        """Harmless when nothing has changed."""
        if doing != self._told:
            self._told = doing
            self._say("doing", asdict(doing))

    def _listen(self) -> None:
        while (line := _line()) not in (END, ""):
            if line == DOOR:
                self._door.set()
        end_this_process()

    def _say(self, name: str, value: Any) -> None:
        line = json.dumps({name: value}) + "\n"
        try:
            os.write(self._output, line.encode())
        except OSError:
            # The launcher is gone; the line from it says so as well.
            return


def _socket_of(given: int | str) -> socket.socket:
    if isinstance(given, int):
        return socket.socket(fileno=given)
    if sys.platform == "win32":
        return socket.fromshare(base64.b64decode(given))
    raise ValueError("A socket is shared in this way on Windows only.")


def _line() -> str:
    """The next one of the launcher; empty when there is none any more.

    Past sys.stdin, whose lock a thread that waits here would still hold at the exit.
    """
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode()


def end_this_process() -> None:
    """As SIGTERM does: what is being written is kept."""
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)
    else:
        # To the main thread, which may be waiting: it is the one that answers signals.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
