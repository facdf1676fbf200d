"""One home, one owner: who comes second finds the first, and a dead owner is no owner."""

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from app.owner import HomeLock, OwnerAddress, own_or_find, owner_address, proof
from app.paths import Paths
from engine.errors import HomeBusy, HomeError
from tests.quiet_server import QuietServer


@contextmanager
def listening(answer: bytes | None = None, token: str = "") -> Iterator[int]:
    """A program on a port: it answers everything with `answer`, or as the owner would."""

    def reply(request: BaseHTTPRequestHandler) -> None:
        (nonce,) = parse_qs(urlsplit(request.path).query)["nonce"]
        request.send_response(200)
        request.end_headers()
        request.wfile.write(proof(token, nonce).encode() if answer is None else answer)

    server = QuietServer(reply)
    with server.serving():
        yield server.port


def unused_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_the_first_owns_the_home_and_the_second_waits_in_vain(paths: Paths) -> None:
    first = own_or_find(paths, 0)
    assert isinstance(first, HomeLock)
    with first, pytest.raises(HomeBusy, match="does not answer after 0 s: wait"):
        own_or_find(paths, 0)
    assert isinstance(own_or_find(paths, 0), HomeLock)


def test_the_second_finds_the_first(paths: Paths) -> None:
    with HomeLock(paths) as lock:
        assert lock.try_acquire()
        address = lock.address("127.0.0.1", 0)
        with listening(token=address.token) as port:
            lock.announce(OwnerAddress("127.0.0.1", port, address.token, address.pid))
            found = own_or_find(paths, 0)
    assert isinstance(found, OwnerAddress)
    assert (found.url, found.pid) == (f"http://127.0.0.1:{port}", os.getpid())


def test_the_note_goes_with_its_owner(paths: Paths) -> None:
    with HomeLock(paths) as lock:
        lock.try_acquire()
        lock.announce(lock.address("127.0.0.1", 1))
        assert owner_address(paths) is not None
    assert owner_address(paths) is None


def test_the_note_of_a_killed_owner_is_no_owner(paths: Paths) -> None:
    paths.owner.write_text(json.dumps({"host": "127.0.0.1", "port": 1, "token": "x", "pid": 1}))
    assert isinstance(own_or_find(paths, 0), HomeLock)
    assert not paths.owner.exists()


NO_NOTES = ("", "{", "[]", "null", '{"host": 1}', "\0", "[" * 100_000)
ODD_NOTES = [
    {"host": 5, "port": 1, "token": "x", "pid": 1},
    {"host": "127.0.0.1", "port": 70_000, "token": "x", "pid": 1},
    {"host": "127.0.0.1", "port": "1", "token": "x", "pid": 1},
    {"host": "127.0.0.1", "port": 1, "token": None, "pid": 1},
]


@pytest.mark.parametrize("text", [*NO_NOTES, *map(json.dumps, ODD_NOTES)])
def test_a_note_that_cannot_be_read_is_no_note(paths: Paths, text: str) -> None:
    paths.owner.write_text(text)
    assert owner_address(paths) is None


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_the_token_is_for_this_user_only(paths: Paths) -> None:
    with HomeLock(paths) as lock:
        lock.try_acquire()
        lock.announce(lock.address("127.0.0.1", 1))
        assert stat.S_IMODE(paths.owner.stat().st_mode) == 0o600


@pytest.mark.parametrize("answer", [b"", b"ok", b"<html>", b"\xff" * 2000])
def test_another_program_on_the_old_port_is_not_the_owner(answer: bytes) -> None:
    with listening(answer) as port:
        assert not OwnerAddress("127.0.0.1", port, "token", 1).answers()


def test_who_knows_another_token_is_not_the_owner() -> None:
    with listening(token="another") as port:
        assert not OwnerAddress("127.0.0.1", port, "token", 1).answers()
        assert OwnerAddress("127.0.0.1", port, "another", 1).answers()


def test_a_program_that_speaks_no_http_is_not_the_owner() -> None:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()

        def speak() -> None:
            connection, _ = sock.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        assert not OwnerAddress("127.0.0.1", sock.getsockname()[1], "token", 1).answers()
        thread.join()


def test_nobody_at_a_port_is_no_owner() -> None:
    assert not OwnerAddress("127.0.0.1", unused_port(), "token", 1).answers()
    assert not OwnerAddress("127.0.0.1", "none", "token", 1).answers()  # type: ignore[arg-type]


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_port()}")
    with listening(token="token") as port:
        assert OwnerAddress("127.0.0.1", port, "token", 1).answers()


def test_an_address_of_ip_version_six_can_be_written() -> None:
    assert OwnerAddress("::1", 80, "token", 1).url == "http://[::1]:80"


@pytest.mark.parametrize("names", [("lock",), ("owner",), ("lock", "owner")])
def test_a_lock_or_a_note_that_is_a_folder_is_one_sentence(
    paths: Paths, names: tuple[str, ...]
) -> None:
    for name in names:
        getattr(paths, name).mkdir()
    words = "The files owner.lock and owner.json in .* cannot be used .*: delete what is there"
    with pytest.raises(HomeError, match=words):
        own_or_find(paths, 0)
    for name in names:
        getattr(paths, name).rmdir()
    assert isinstance(own_or_find(paths, 0), HomeLock)


def test_a_note_that_became_a_folder_does_not_keep_the_lock(paths: Paths) -> None:
    with HomeLock(paths) as lock:
        assert lock.try_acquire()
        paths.owner.mkdir()
    paths.owner.rmdir()
    assert isinstance(own_or_find(paths, 0), HomeLock)


@pytest.mark.skipif(os.name == "nt", reason="there a file that is locked cannot be deleted")
def test_a_lock_whose_file_was_deleted_is_lost_and_leaves_the_note_of_the_next(
    paths: Paths,
) -> None:
    first, second = HomeLock(paths), HomeLock(paths)
    assert not first.is_lost
    assert first.try_acquire() and not first.is_lost
    paths.lock.unlink()
    assert first.is_lost
    assert second.try_acquire() and first.is_lost and not second.is_lost
    second.announce(second.address("127.0.0.1", 1))
    first.release()
    assert owner_address(paths) is not None
    second.release()
    assert owner_address(paths) is None


def test_a_note_that_cannot_be_left_is_one_sentence(paths: Paths) -> None:
    with HomeLock(paths) as lock:
        lock.try_acquire()
        paths.owner.with_name("owner.json.part").mkdir()
        with pytest.raises(HomeError, match="cannot be written"):
            lock.announce(lock.address("127.0.0.1", 1))
