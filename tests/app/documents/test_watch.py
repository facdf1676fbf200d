"""What changes in a folder is noticed, and what cannot be watched is looked at again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from app.documents import watch
from app.documents.library import Library
from app.documents.watch import Watch
from tests.app.documents.test_library import added, paths, write
from tests.fakes_documents import FakeReader

SOON_MS = 60


@pytest.fixture
async def watching(library: Library) -> AsyncIterator[Watch]:
    watch = Watch(library, quiet_ms=SOON_MS)
    task = asyncio.create_task(watch.run())
    yield watch
    task.cancel()
    await asyncio.wait([task])


async def until_found(library: Library, question: str, names: list[str]) -> None:
    for _ in range(400):
        if await paths(library, question) == names:
            return
        await asyncio.sleep(0.05)
    assert await paths(library, question) == names


async def test_files_that_come_change_and_go_are_noticed(
    library: Library, folder: Path, watching: Watch
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    # The watch begins again with the new folder.
    await asyncio.sleep(0.5)
    write(folder / "new/b.txt", "The river Rhine.")
    await until_found(library, "Rhine", ["b.txt"])
    write(folder / "new/b.txt", "The river Danube.")
    await until_found(library, "Danube", ["b.txt"])
    assert await paths(library, "Rhine") == []
    file.rename(folder / "c.txt")
    await until_found(library, "Inn", ["c.txt"])
    (folder / "c.txt").unlink()
    await until_found(library, "Inn", [])
    assert watching.notice == ""


async def test_a_single_file_that_is_replaced_is_noticed(
    library: Library, folder: Path, watching: Watch
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    await added(library, file)
    await asyncio.sleep(0.5)
    write(folder / "other.txt", "The river Rhine.").replace(file)
    await until_found(library, "Rhine", ["a.txt"])
    write(folder / "unasked.txt", "The river Danube.")
    await asyncio.sleep(0.3)
    assert await paths(library, "Danube") == []


async def test_what_changed_while_nobody_watched_is_seen_at_the_start(
    library: Library, folder: Path
) -> None:
    await added(library, folder)
    write(folder / "a.txt", "The river Inn.")
    library.follow()
    await until_found(library, "Inn", ["a.txt"])


async def test_where_nothing_can_be_watched_it_is_looked_again(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    async def refuse(*_: Any, **__: Any) -> AsyncIterator[Any]:
        raise OSError("OS file watch limit reached")
        yield

    monkeypatch.setattr(watch, "awatch", refuse)
    await added(library, folder)
    looking = Watch(library, look_s=0.1)
    with caplog.at_level(logging.WARNING):
        task = asyncio.create_task(looking.run())
        await asyncio.sleep(0.05)
        write(folder / "a.txt", "The river Inn.")
        await until_found(library, "Inn", ["a.txt"])
    assert "watch limit reached" in caplog.text
    task.cancel()
    await asyncio.wait([task])


async def test_closing_ends_the_watch(room: Path, folder: Path) -> None:
    library = Library(room / "documents.sqlite3", FakeReader())
    await added(library, folder)
    library.follow()
    await asyncio.sleep(0.2)
    await asyncio.wait_for(library.close(), 5)


async def test_a_storm_of_changes_is_one_look(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await added(library, folder)
    looks: list[Path | None] = []
    look: Callable[..., Any] = library.look

    async def counted(place: Path | None = None) -> None:
        looks.append(place)
        await look(place)

    monkeypatch.setattr(library, "look", counted)
    task = asyncio.create_task(Watch(library, quiet_ms=400).run())
    await asyncio.sleep(0.5)
    for number in range(50):
        write(folder / f"{number}.txt", f"The river number{number}.")
        await asyncio.sleep(0.005)
    write(folder / "last.txt", "The estuary.")
    await until_found(library, "estuary", ["last.txt"])
    # The first one is that of the start.
    assert looks[0] is None and 2 <= len(looks) <= 4
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("pause_s", [0.3, 0.01], ids=["now and then", "all the time"])
async def test_what_we_write_ourselves_is_no_change_and_hides_none(
    room: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, pause_s: float
) -> None:
    monkeypatch.setattr(watch, "LONGEST_UNQUIET_S", 1000.0)
    data = folder / "home/data"
    data.mkdir(parents=True)
    library = Library(room / "documents.sqlite3", FakeReader(), [data])
    await added(library, folder)
    looks: list[Path | None] = []
    look: Callable[..., Any] = library.look

    async def counted(place: Path | None = None) -> None:
        looks.append(place)
        await look(place)

    async def write_on() -> None:
        while True:
            write(data / "log", str(monotonic()))
            await asyncio.sleep(pause_s)

    monkeypatch.setattr(library, "look", counted)
    tasks = [
        asyncio.create_task(Watch(library, quiet_ms=SOON_MS).run()),
        asyncio.create_task(write_on()),
    ]
    await asyncio.sleep(1.5)
    assert looks == [None]
    write(folder / "a.txt", "The river Inn.")
    await until_found(library, "Inn", ["a.txt"])
    assert set(looks[1:]) == {folder}
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await library.close()
