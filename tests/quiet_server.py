"""A server on this machine that keeps no log and takes it from nobody that they leave early."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class QuietServer:
    """`answer` is called with every GET, each in a thread of its own."""

    def __init__(self, answer: Answer, protocol_version: str = "HTTP/1.0") -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(ConnectionError):
                    answer(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Whoever leaves in the middle is no fault here."""

        Handler.protocol_version = protocol_version
        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
