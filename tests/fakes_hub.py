"""A Hugging Face on this machine, on a real port, that can misbehave in every way a network can."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.quiet_server import QuietServer

REVISION = "0123456789abcdef"


@dataclass
class Misbehaviour:
    """What goes wrong; each of `cuts` ends one answer after so many bytes of its body."""

    cuts: list[int] = field(default_factory=list)
    stall_after: int | None = None
    has_ranges: bool = True
    has_sums: bool = True
    wrong_range: bool = False
    announced_extra: int = 0
    sent_extra: int = 0
    encoding: str = ""
    status: int = 200
    redirect: str = ""
    bytes_per_s: float = 0.0
    answer: bytes | None = None
    """Instead of the JSON of the API."""


class FakeHub:
    """`files` by repository and name. `asked` are the paths of all requests with their Range."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.wrong = Misbehaviour()
        self.etag = '"one"'
        self.asked: list[tuple[str, str]] = []
        self.go_on = threading.Event()
        self._server = QuietServer(self.answer, "HTTP/1.1")
        self.url = self._server.url

    @contextmanager
    def serving(self) -> Iterator["FakeHub"]:
        with self._server.serving():
            try:
                yield self
            finally:
                self.go_on.set()

    @property
    def ranges(self) -> list[str]:
        """Of the requests for files, in their order; empty for a whole one."""
        return [told for path, told in self.asked if path.startswith("/cdn/")]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        path = unquote(parts.path)
        self.asked.append((path, request.headers.get("Range", "")))
        pieces = path.strip("/").split("/")
        if path == "/api/models":
            self._json(request, self._found(parse_qs(parts.query)["search"][0]))
        elif pieces[:2] == ["api", "models"]:
            self._repo(request, "/".join(pieces[2:]))
        elif pieces[0] == "cdn":
            self._file(request, self.files["/".join(pieces[1:3])][pieces[-1]])
        elif len(pieces) > 4 and pieces[2] == "resolve":
            self._hand_on(request, "/".join(pieces[:2]), pieces[-1])
        else:
            self._plain(request, 404, b"")

    def _found(self, text: str) -> list[dict[str, Any]]:
        names = [name for name in self.files if text.lower() in name.lower()]
        tags = ["gguf", "license:apache-2.0"]
        return [{"id": name, "downloads": 7, "likes": 3, "tags": tags} for name in names]

    def _repo(self, request: BaseHTTPRequestHandler, repo: str) -> None:
        if repo not in self.files:
            self._plain(request, 404, b"")
            return
        siblings: list[dict[str, Any]] = [{"rfilename": "README.md", "size": 10}]
        for name, content in self.files[repo].items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(content)}
            if self.wrong.has_sums:
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(content)}
            siblings.append(entry)
        self._json(request, {"id": repo, "sha": REVISION, "siblings": siblings})

    def _hand_on(self, request: BaseHTTPRequestHandler, repo: str, name: str) -> None:
        content = self.files[repo][name]
        request.send_response(302)
        request.send_header("Location", self.wrong.redirect or f"/cdn/{repo}/{name}")
        if self.wrong.has_sums:
            request.send_header("X-Linked-Size", str(len(content)))
            request.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _file(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        wrong = self.wrong
        if wrong.status != 200:
            self._plain(request, wrong.status, b"")
            return
        start = 0
        wanted = request.headers.get("Range", "")
        is_same = request.headers.get("If-Range", self.etag) == self.etag
        if wanted and wrong.has_ranges and is_same:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self._plain(request, 416, b"")
                return
            request.send_response(206)
            shown = start + 1 if wrong.wrong_range else start
            total = len(content) + wrong.announced_extra
            request.send_header("Content-Range", f"bytes {shown}-{total - 1}/{total}")
        else:
            request.send_response(200)
        body = content[start:] + b"x" * wrong.sent_extra
        request.send_header("ETag", self.etag)
        if wrong.encoding:
            request.send_header("Content-Encoding", wrong.encoding)
        if wrong.sent_extra:
            request.send_header("Connection", "close")
        else:
            request.send_header("Content-Length", str(len(body) + wrong.announced_extra))
        request.end_headers()
        self._send(request, body)

    def _send(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        wrong = self.wrong
        is_cut = bool(wrong.cuts)
        end = min(wrong.cuts.pop(0), len(body)) if is_cut else len(body)
        if wrong.stall_after is not None:
            request.wfile.write(body[: wrong.stall_after])
            request.wfile.flush()
            self.go_on.wait(30)
            request.close_connection = True
            return
        piece = int(wrong.bytes_per_s / 20) or 65536
        for at in range(0, end, piece):
            request.wfile.write(body[at : min(at + piece, end)])
            if wrong.bytes_per_s:
                time.sleep(0.05)
        request.wfile.flush()
        request.close_connection = request.close_connection or is_cut or bool(wrong.sent_extra)

    def _json(self, request: BaseHTTPRequestHandler, value: Any) -> None:
        body = json.dumps(value).encode() if self.wrong.answer is None else self.wrong.answer
        self._plain(request, 200, body)

    def _plain(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
