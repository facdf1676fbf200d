"""An app as its launcher knows it: it answers on the socket, and dies in the way it is asked to."""

import http.server
import json
import os
import signal
import socketserver
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app.launch.link import Doing, Link
from app.owner import HomeLock, proof
from app.paths import Paths

DOING = Doing(page=True, model="Qwen 7B", answering="writing")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path:
            case "/die":
                link.tell(DOING)
                os.kill(os.getpid(), int(given["signal"]))
                time.sleep(60)
            case "/exit":
                os._exit(int(given["code"]))
            case "/say":
                os.write(2, f"{given['line']}\n".encode())
            case "/fault":
                link.fault(given["what"])
                os._exit(0)
            case "/print":
                # What libraries print must not be taken for what the app says.
                print('{"failed": "not meant for the launcher"}', flush=True)
            case "/ask":
                link.ask(given["wish"])
            case "/_app/ping":
                self.answer(proof(address.token, given["nonce"]).encode())
                return
        facts = {
            "instance": str(os.getpid()),
            "arguments": sys.argv[1:],
            "crash": link.orders.crash,
            "note": link.orders.note,
            "starter": os.environ.get("INGLENOOK_STARTER", ""),
            "backtrace": os.environ.get("GGML_NO_BACKTRACE"),
        }
        self.answer(json.dumps(facts).encode())

    def do_POST(self) -> None:
        link.ask("show")
        self.answer(b"")

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def end(*_: object) -> None:
    Path(os.environ["INGLENOOK_HOME"], "ended").write_text(str(os.getpid()))
    lock.release()
    os._exit(0)


signal.signal(signal.SIGTERM, end)
link = Link.take()
failing = Path(os.environ["INGLENOOK_HOME"], "fails")
if failing.exists():
    link.failed(failing.read_text())
    sys.exit(1)
dying = Path(os.environ["INGLENOOK_HOME"], "dies")
if dying.exists() and "--safe" not in sys.argv:
    link.tell(Doing(model="Qwen 7B", is_loading=True))
    os.kill(os.getpid(), signal.SIGSEGV)
lock = HomeLock(Paths.from_environment())
while not lock.try_acquire():
    time.sleep(0.01)
address = lock.address(*link.socket.getsockname())
lock.announce(address)
server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = link.socket
link.ready("http://here")
while not link.has_door:
    time.sleep(0.005)
server.serve_forever(0.02)
