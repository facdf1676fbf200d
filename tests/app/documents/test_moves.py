"""Files that get another name are found by the old one, and what is gone is known to be."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.documents.library import Library
from app.documents.scope import Scope
from app.documents.whereabouts import Whereabouts, whereabouts
from tests.fakes_documents import FakeReader


class Room:
    """A library with one folder, and what it knows of paths in it."""

    def __init__(self, folder: Path) -> None:
        self.library = Library(folder / "documents.sqlite3", FakeReader())
        self.papers = folder / "papers"
        self.papers.mkdir()

    def path(self, name: str) -> str:
        return str(self.papers / name)

    async def look(self) -> None:
        await self.library.look()
        await self.library.settled()

    async def rename(self, before: str, now: str) -> None:
        (self.papers / before).rename(self.papers / now)
        await self.look()

    async def asked(self, *names: str, since: float = float("inf")) -> Whereabouts:
        scope = Scope(paths=tuple(map(self.path, names)))
        return await self.library.ask(lambda tables: whereabouts(tables, scope, since))

    async def num_moves(self) -> int:
        def count(tables: object) -> int:
            (num,) = tables.execute("select count(*) from moved").fetchone()  # type: ignore[attr-defined]
            return int(num)

        return await self.library.ask(count)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path)
    (room.papers / "lease.txt").write_text("The rent is 850 euros.")
    (room.papers / "inn.txt").write_text("The river Inn.")
    await room.library.prepare()
    await room.library.add(room.papers)
    await room.library.settled()
    yield room
    await room.library.close()


async def test_what_has_kept_its_name_is_where_it_was(room: Room) -> None:
    found = await room.asked("lease.txt")
    assert found.is_whole and found.scope.paths == (room.path("lease.txt"),)
    folder = Scope(paths=(str(room.papers),))
    assert (await room.library.ask(lambda tables: whereabouts(tables, folder))).scope == folder


async def test_a_renamed_file_is_followed_through_all_its_names(room: Room) -> None:
    await room.rename("lease.txt", "contract.txt")
    await room.rename("contract.txt", "agreement.txt")
    for name in ("lease.txt", "contract.txt", "agreement.txt"):
        found = await room.asked(name)
        assert found.is_whole and found.scope.paths == (room.path("agreement.txt"),)
    both = await room.asked("lease.txt", "agreement.txt", "inn.txt")
    assert both.scope.paths == (room.path("agreement.txt"), room.path("inn.txt"))


async def test_a_move_is_named_to_who_has_not_heard_of_it(room: Room) -> None:
    before = time.time()
    await room.rename("lease.txt", "contract.txt")
    found = await room.asked("contract.txt", since=before)
    assert found.moves == ((room.path("lease.txt"), room.path("contract.txt")),)
    assert (await room.asked("contract.txt", since=time.time())).moves == ()


async def test_a_name_that_is_used_again_is_the_file_that_has_it(room: Room) -> None:
    await room.rename("lease.txt", "contract.txt")
    (room.papers / "lease.txt").write_text("Another lease.")
    await room.look()
    assert (await room.asked("lease.txt")).scope.paths == (room.path("lease.txt"),)
    await room.rename("contract.txt", "old.txt")
    (room.papers / "lease.txt").unlink()
    await room.look()
    assert (await room.asked("lease.txt")).gone == (room.path("lease.txt"),)


async def test_there_and_back_again_is_where_it_was(room: Room) -> None:
    await room.rename("lease.txt", "contract.txt")
    await room.rename("contract.txt", "lease.txt")
    for name in ("lease.txt", "contract.txt"):
        assert (await room.asked(name)).scope.paths == (room.path("lease.txt"),)


async def test_what_is_deleted_is_gone_and_the_rest_is_told(room: Room) -> None:
    (room.papers / "lease.txt").unlink()
    await room.look()
    found = await room.asked("lease.txt", "inn.txt")
    assert found.gone == (room.path("lease.txt"),) and not found.is_whole
    assert found.rest == Scope(paths=(room.path("inn.txt"),))
    assert (await room.asked("lease.txt")).rest is None


async def test_a_collection_that_is_gone_is_named(room: Room) -> None:
    await room.library.collect("flats", room.papers / "lease.txt")
    scope = Scope(collections=("flats", "houses"))
    found = await room.library.ask(lambda tables: whereabouts(tables, scope))
    assert found.gone_collections == ("houses",) and found.rest == Scope(collections=("flats",))


async def test_nothing_is_remembered_of_what_left_the_library(room: Room) -> None:
    await room.rename("lease.txt", "contract.txt")
    assert await room.num_moves() == 1
    await room.library.remove(room.papers)
    assert await room.num_moves() == 0
    assert (await room.asked("lease.txt")).gone == (room.path("lease.txt"),)


async def test_a_folder_that_is_away_has_its_files_as_before(room: Room) -> None:
    room.papers.rename(room.papers.with_name("away"))
    await room.look()
    assert (await room.asked("lease.txt")).is_whole
