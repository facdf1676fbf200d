"""The app finds its home, says what it waits for, and takes the socket when it is its own."""

import asyncio
from typing import cast

import pytest

from app import run as run_file
from app.launch.link import Doing, Link
from app.owner import HomeLock
from app.paths import Paths
from app.run import Run, find, run, take_door
from engine.errors import HomeBusy, UsageError


class FakeLink:
    def __init__(self) -> None:
        self.told: list[Doing] = []
        self.urls: list[str] = []
        self.has_door = False

    def tell(self, doing: Doing) -> None:
        self.told.append(doing)

    def ready(self, url: str) -> None:
        self.urls.append(url)


def test_a_free_home_is_owned_at_once(paths: Paths) -> None:
    link = FakeLink()
    found = find(paths, cast(Link, link))
    assert isinstance(found, HomeLock) and link.told == []
    found.release()


def test_a_home_that_another_command_holds_is_waited_for_and_that_is_said(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_file, "PATIENCE_S", 0)
    link = FakeLink()
    with HomeLock(paths) as lock:
        lock.try_acquire()
        with pytest.raises(HomeBusy):
            find(paths, cast(Link, link))
    assert [doing.waiting for doing in link.told] == [run_file.WAITING]


async def test_the_socket_is_used_when_the_launcher_has_left_it() -> None:
    link = FakeLink()
    taking = asyncio.create_task(take_door(cast(Link, link), "http://here"))
    await asyncio.sleep(0.05)
    assert link.urls == ["http://here"] and not taking.done()
    link.has_door = True
    await asyncio.wait_for(taking, 10)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="on this machine only"):
        run(Run(host="0.0.0.0"))
