"""The splash answers on a socket that it shares, to this machine's own page only."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from app.launch.splash import Splash
from app.launch.status import Problem, Status
from app.launch.wish import Wish
from app.owner import TOKEN_HEADER, OwnerAddress
from app.web.port import bind

TOKEN = "the token of the launcher"


class Room:
    """A splash on a port, and what it was asked."""

    def __init__(self, sock: socket.socket) -> None:
        self.port: int = sock.getsockname()[1]
        self.status = Status()
        self.wishes: list[Wish] = []
        self.splash = Splash(
            sock, TOKEN, lambda: self.status, self.wishes.append, lambda: "the report"
        )

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with closing(connection):
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            self.headers = response.headers
            return response.status, response.read().decode()

    def press(self, path: str) -> int:
        """As a button of the page does."""
        return self.ask("POST", path, Origin=f"http://127.0.0.1:{self.port}")[0]

    def state(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.ask("GET", "/_app/state")[1])
        return shown


@pytest.fixture
def room() -> Iterator[Room]:
    with bind(port=0) as sock:
        room = Room(sock)
        room.splash.open()
        yield room
        room.splash.shut()


def test_the_page_is_there_with_the_policy_of_the_app(room: Room) -> None:
    assert not room.splash.was_seen
    status, text = room.ask("GET", "/")
    assert status == 200 and "Inglenook is starting" in text
    assert "default-src 'self'" in room.headers["content-security-policy"]
    assert room.headers["cache-control"] == "no-store"
    assert room.splash.was_seen
    # Everything is in it: there is nobody yet to answer for more.
    assert "src=" not in text and "http" not in text.replace("http-equiv", "")


def test_what_happens_can_be_asked(room: Room) -> None:
    assert room.state()["starting"]["steps"] == [{"text": "Starting", "is_done": False}]
    room.status = Status(problem=Problem(sentence="No room.", offers=("quit",)))
    assert room.state()["problem"]["sentence"] == "No room."


def test_buttons_are_wishes(room: Room) -> None:
    for path in ("quit", "restart", "restart?safe=1", "logs"):
        assert room.press(f"/_app/{path}") == 200
    assert room.wishes == [Wish.QUIT, Wish.RESTART, Wish.SAFE, Wish.LOGS]
    assert room.ask("GET", "/_app/report") == (200, "the report")


@pytest.mark.parametrize("path", ["/_app/quit", "/_app/restart", "/_app/logs", "/_app/show"])
def test_nobody_else_may_press_them(room: Room, path: str) -> None:
    for headers in (
        {},
        {"Origin": "http://evil.test"},
        {"Origin": f"http://127.0.0.1:{room.port}", "Host": "evil.test"},
        {"Origin": f"http://127.0.0.1:{room.port}", "Sec-Fetch-Site": "cross-site"},
    ):
        assert room.ask("POST", path, **headers)[0] in (403, 421)
    assert room.ask("GET", path)[0] in (404, 503)
    assert room.wishes == []


def test_a_second_click_shows_the_window_and_proves_who_it_is(room: Room) -> None:
    assert room.ask("POST", "/_app/show", **{TOKEN_HEADER: TOKEN})[0] == 200
    assert room.ask("POST", "/_app/show", **{TOKEN_HEADER: "another"})[0] == 403
    assert room.wishes == [Wish.SHOW]
    assert OwnerAddress("127.0.0.1", room.port, TOKEN, 1).answers()
    assert not OwnerAddress("127.0.0.1", room.port, "another", 1).answers()


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/_app/command", "/gradio_api/queue/join"]
)
def test_what_only_the_app_can_do_is_put_off(room: Room, path: str) -> None:
    status, text = room.ask("POST", path, Origin=f"http://127.0.0.1:{room.port}")
    assert status == 503 and room.headers["retry-after"] == "1"
    assert "is starting" in json.loads(text)["error"]["message"]


def test_a_connection_waits_while_nobody_answers_and_is_not_refused(room: Room) -> None:
    room.splash.shut()
    states: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: states.append(room.state()))
    asking.start()
    time.sleep(0.2)
    assert states == []
    room.splash.open()
    asking.join(10)
    assert states[0]["starting"]


def test_it_leaves_the_socket_to_another_and_comes_back(room: Room) -> None:
    room.splash.shut()
    room.splash.shut()
    server = socket.socket(fileno=socket.dup(room.splash._server.socket.fileno()))
    asking = threading.Thread(target=lambda: room.ask("GET", "/"))
    asking.start()
    with closing(server):
        server.settimeout(10)
        connection, _ = server.accept()
        connection.settimeout(10)
        assert connection.recv(1000).startswith(b"GET / ")
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        connection.close()
    asking.join(10)
    room.splash.open()
    room.splash.open()
    assert room.ask("GET", "/")[0] == 200


def test_who_says_nothing_does_not_hold_up_the_others(room: Room) -> None:
    with socket.create_connection(("127.0.0.1", room.port)):
        assert room.ask("GET", "/")[0] == 200
