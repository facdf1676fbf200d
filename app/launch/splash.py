"""The page that is there at once, on the app's own address, from the standard library alone.

The launcher and the app share one listening socket. The splash answers on it until the app can,
and again when the app is gone, so that a browser never finds a closed door.
"""

import contextlib
import hmac
import http.server
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app.launch.status import Status
from app.launch.wish import Wish
from app.owner import TOKEN_HEADER, proof
from app.web.guard import HEADERS, Guard, local_hosts

PAGE = Path(__file__).parent / "splash.html"
POLL_S = 0.02
"""How soon the splash leaves the socket to the app."""
SLOW_S = 10.0
STARTING = "Inglenook is starting: try again in a few seconds."
BUTTONS = {"/_app/quit": Wish.QUIT, "/_app/logs": Wish.LOGS}


class Splash:
    """Owned by the launcher's thread. `status`, `on_wish` and `report` are called in others."""

    def __init__(
        self,
        sock: socket.socket,
        token: str,
        status: Callable[[], Status],
        on_wish: Callable[[Wish], None],
        report: Callable[[], str],
    ) -> None:
        self._server = _Server(sock, token, status, on_wish, report)
        self._thread: threading.Thread | None = None

    @property
    def was_seen(self) -> bool:
        """Whether a browser has fetched the page."""
        return self._server.was_seen

    @property
    def is_open(self) -> bool:
        return self._thread is not None

    def open(self) -> None:
        """Answer. Harmless while it does."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(POLL_S,), name="splash", daemon=True
            )
            self._thread.start()

    def shut(self) -> None:
        """Leave the socket to the app; what was accepted is still answered."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True

    def __init__(
        self,
        sock: socket.socket,
        token: str,
        status: Callable[[], Status],
        on_wish: Callable[[Wish], None],
        report: Callable[[], str],
    ) -> None:
        # Without the listening of its own, which the base class would begin.
        socketserver.BaseServer.__init__(self, sock.getsockname(), _Handler)
        self.socket = sock
        # Another process may take the connection first.
        sock.setblocking(False)
        self.token = token
        self.status = status
        self.on_wish = on_wish
        self.report = report
        self.was_seen = False
        self.guard = Guard(_no_app, local_hosts(sock.getsockname()[1]))

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = self.socket.accept()
        connection.settimeout(SLOW_S)
        return connection, address

    def handle_error(self, *_: Any) -> None:
        """A browser that goes away in the middle is no fault."""


async def _no_app(*_: Any) -> None:
    """The guard is asked here only who may pass."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    server_version = "Inglenook"
    sys_version = ""

    def do_GET(self) -> None:
        if not self._may_pass():
            return
        parts = urlsplit(self.path)
        match parts.path:
            case "/":
                self.server.was_seen = True
                self._answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
            case "/_app/state":
                self._answer_json(200, self.server.status().as_json())
            case "/_app/ping":
                nonce = parse_qs(parts.query).get("nonce", [""])[0]
                self._answer(200, proof(self.server.token, nonce).encode(), "text/plain")
            case "/_app/report":
                self._answer(200, self.server.report().encode(), "text/plain; charset=utf-8")
            case _:
                self._say_starting()

    do_HEAD = do_GET

    def do_POST(self) -> None:
        if not self._may_pass():
            return
        path = urlsplit(self.path).path
        with contextlib.suppress(ValueError):
            self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1000))
        if path == "/_app/show":
            given = self.headers.get(TOKEN_HEADER, "")
            if hmac.compare_digest(given.encode(), self.server.token.encode()):
                self._take(Wish.SHOW)
            else:
                self._answer(403, b"This needs the token of the launcher.\n", "text/plain")
        elif path == "/_app/restart":
            is_safe = "safe" in parse_qs(urlsplit(self.path).query)
            self._take(Wish.SAFE if is_safe else Wish.RESTART)
        elif path in BUTTONS:
            self._take(BUTTONS[path])
        else:
            self._say_starting()

    def _take(self, wish: Wish) -> None:
        # It only goes into an inbox: also of an end that is wished for there is time to tell.
        self.server.on_wish(wish)
        self._answer_json(200, {"wish": wish.value})

    def _may_pass(self) -> bool:
        scope = {
            "type": "http",
            "method": self.command,
            "path": urlsplit(self.path).path,
            "headers": [
                (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
                for name, value in self.headers.items()
            ],
        }
        refusal = self.server.guard.refusal(scope)
        if refusal is None:
            return True
        self._answer(refusal[0], f"{refusal[1]}\n".encode(), "text/plain; charset=utf-8")
        return False

    def _say_starting(self) -> None:
        """In the form that programs at /v1 understand."""
        self._answer_json(503, {"error": {"message": STARTING, "type": "starting", "code": 503}})

    def _answer_json(self, status: int, value: dict[str, Any]) -> None:
        self._answer(status, json.dumps(value).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        if status == 503:
            self.send_header("Retry-After", "1")
        for name, text in HEADERS.items():
            self.send_header(name.decode(), text.decode())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Who asked for what is nobody's business."""
