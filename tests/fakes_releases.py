"""A place on this machine where versions are published, which can misbehave as any server can."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from app.updates.comparison import this_system
from tests.quiet_server import QuietServer

SUM = "0123456789abcdef" * 4


def newer(version: str = "99.0.0", **changes: Any) -> dict[str, Any]:
    """What `latest.json` says of a version with an archive for this machine and for another."""
    archives = [
        {
            "name": f"inglenook-{version}-{system}.tar.xz",
            "bytes": 181_000_000,
            "sha256": SUM,
            "system": system,
        }
        for system in ("plan9-pdp11", this_system())
    ]
    return {"version": version, "date": "2026-12-24", "archives": archives, **changes}


class FakeReleases:
    """`body` is the answer, `status` its number; `wrong` answers instead. `asked` are the paths."""

    def __init__(self) -> None:
        self.body = json.dumps(newer()).encode()
        self.status = 200
        self.headers: dict[str, str] = {}
        self.wrong: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.asked: list[str] = []
        self.is_over = threading.Event()
        self._server = QuietServer(self._answer)
        self.url = f"{self._server.url}/inglenook"

    @contextmanager
    def serving(self) -> Iterator["FakeReleases"]:
        with self._server.serving():
            try:
                yield self
            finally:
                self.is_over.set()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        (self.wrong or self.answer)(request)

    def says(self, value: Any) -> None:
        self.body = json.dumps(value).encode()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(self.status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(self.body)))
        request.end_headers()
        request.wfile.write(self.body)

    def hands_on(self, to: str) -> None:
        """Every question but those for what it hands on to."""
        self.status, self.headers, self.body = 302, {"Location": to}, b""

    def stalls(self, request: BaseHTTPRequestHandler) -> None:
        """After the first half of its answer."""
        request.send_response(200)
        request.send_header("Content-Length", str(len(self.body)))
        request.end_headers()
        request.wfile.write(self.body[: len(self.body) // 2])
        request.wfile.flush()
        self.is_over.wait(60)

    def drips(self, request: BaseHTTPRequestHandler) -> None:
        """White space for as long as anybody listens, a little at a time."""
        request.send_response(200)
        request.end_headers()
        while not self.is_over.wait(0.02):
            request.wfile.write(b" ")
            request.wfile.flush()

    def floods(self, request: BaseHTTPRequestHandler) -> None:
        """100 MB; `num_sent` says how much of it was taken."""
        request.send_response(200)
        request.send_header("Content-Length", str(100_000_000))
        request.end_headers()
        self.num_sent = 0
        for _ in range(1_000):
            request.wfile.write(b" " * 100_000)
            self.num_sent += 100_000
