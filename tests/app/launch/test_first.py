"""Who comes second finds the first; who died, or is no Inglenook, is no first one."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.launch.first import find_first, show_first
from app.launch.splash import Splash
from app.launch.status import Status
from app.launch.wish import Wish
from app.owner import HomeLock, OwnerAddress
from app.paths import Paths
from app.web.port import bind
from engine.errors import HomeBusy


@contextmanager
def answering(token: str, wishes: list[Wish]) -> Iterator[int]:
    with bind(port=0) as sock:
        splash = Splash(sock, token, Status, wishes.append, str)
        splash.open()
        yield sock.getsockname()[1]
        splash.shut()


def test_the_first_one_has_the_lock(paths: Paths) -> None:
    with HomeLock.of_launcher(paths) as lock:
        assert find_first(paths, lock, 0) is None
        assert not HomeLock.of_launcher(paths).try_acquire()
        # The app's own lock is for the app.
        with HomeLock(paths) as app:
            assert app.try_acquire()


def test_the_second_shows_the_first(paths: Paths) -> None:
    wishes: list[Wish] = []
    with HomeLock.of_launcher(paths) as first, answering("token", wishes) as port:
        assert find_first(paths, first, 0) is None
        first.announce(OwnerAddress("127.0.0.1", port, "token", 1))
        found = find_first(paths, HomeLock.of_launcher(paths), 0)
        assert found is not None and found.port == port
        opened: list[str] = []
        show_first(found, lambda: opened.append("window"))
    assert (wishes, opened) == ([Wish.SHOW], [])


def test_an_app_without_a_launcher_is_the_first_and_its_window_is_opened_by_us(
    paths: Paths,
) -> None:
    with HomeLock(paths) as app, answering("token", []) as port:
        app.try_acquire()
        app.announce(OwnerAddress("127.0.0.1", port, "token", 1))
        lock = HomeLock.of_launcher(paths)
        found = find_first(paths, lock, 0)
        assert found is not None and found.port == port
        # And a launcher may come when the app has gone.
        assert lock.try_acquire()
        lock.release()
    opened: list[str] = []
    show_first(OwnerAddress("127.0.0.1", port, "token", 1), lambda: opened.append("window"))
    assert opened == ["window"]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"host": 1})])
def test_the_notes_of_the_dead_are_no_obstacle(paths: Paths, text: str) -> None:
    paths.launcher.write_text(text)
    paths.owner.write_text(text)
    with HomeLock.of_launcher(paths) as lock:
        assert find_first(paths, lock, 0) is None


def test_another_program_on_the_old_port_is_no_obstacle(paths: Paths) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        note = json.dumps({"host": "127.0.0.1", "port": port, "token": "x", "pid": 1})
        paths.launcher.write_text(note)
        paths.owner.write_text(note)
        with HomeLock.of_launcher(paths) as lock:
            assert find_first(paths, lock, 0) is None


def test_a_command_that_works_for_a_moment_is_no_first_one(paths: Paths) -> None:
    with HomeLock(paths) as command, HomeLock.of_launcher(paths) as lock:
        command.try_acquire()
        assert find_first(paths, lock, 0) is None


def test_a_first_one_that_does_not_answer_is_one_sentence(paths: Paths) -> None:
    with HomeLock.of_launcher(paths) as first:
        first.try_acquire()
        with pytest.raises(HomeBusy, match="does not answer after 0 s: wait"):
            find_first(paths, HomeLock.of_launcher(paths), 0)


def test_of_many_at_once_one_is_the_first(paths: Paths) -> None:
    wishes: list[Wish] = []
    results: list[object] = []
    with answering("token", wishes) as port:

        def click() -> None:
            lock = HomeLock.of_launcher(paths)
            found = find_first(paths, lock, 10)
            if found is None:
                lock.announce(OwnerAddress("127.0.0.1", port, "token", 1))
                locks.append(lock)
            results.append(found)

        locks: list[HomeLock] = []
        threads = [threading.Thread(target=click) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(results) == 8 and results.count(None) == 1
        locks[0].release()
