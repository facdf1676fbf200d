"""Which root has a place, and who hears when one comes or goes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.documents.holding import LIBRARY
from app.documents.roots import Roots, root_of
from app.documents.rows import Root, known_files, roots
from app.history.database import Database
from engine.errors import UsageError
from tests.app.documents.test_library import write


@pytest.fixture
def database(room: Path) -> Iterator[Database]:
    with Database(room / "documents.sqlite3", LIBRARY) as database:
        yield database


@pytest.fixture
def there(database: Database) -> Roots:
    return Roots(database, (), None)


async def taken_in(there: Roots, path: Path) -> Root:
    path.mkdir(parents=True, exist_ok=True)
    root = await there.take_in(path, is_folder=True)
    await there.look_at(root, is_asked=True)
    return root


async def test_a_place_in_a_root_makes_no_other_one(
    there: Roots, folder: Path, database: Database
) -> None:
    outer = await taken_in(there, folder)
    assert (await taken_in(there, folder / "deep")).root_id == outer.root_id
    assert (await taken_in(there, folder)).root_id == outer.root_id
    hidden = await taken_in(there, folder / ".drafts")
    assert hidden.root_id != outer.root_id
    found = await database.run(roots)
    inside = root_of(found, str(folder / ".drafts/deep"))
    assert inside is not None and inside.path == hidden.path
    assert root_of(found, str(folder.parent)) is None


async def test_a_folder_around_a_root_has_its_files_as_they_are(
    there: Roots, folder: Path, database: Database
) -> None:
    file = write(folder / "deep/a.txt", "The river Inn.")
    await taken_in(there, folder / "deep")
    outer = await taken_in(there, folder)
    assert [root.path for root in await database.run(roots)] == [str(folder)]
    known = await database.run(lambda tables: known_files(tables, outer.root_id))
    assert list(known) == [str(file)]


async def test_who_follows_hears_of_roots_that_come_and_go(there: Roots, folder: Path) -> None:
    moved = there.moved()
    await taken_in(there, folder)
    assert moved.is_set()
    moved = there.moved()
    await taken_in(there, folder / "deep")
    with pytest.raises(UsageError, match="which is in the library as a whole"):
        await there.leave(str(folder / "deep"))
    with pytest.raises(UsageError, match="is not in the library"):
        await there.leave(str(folder.parent))
    assert not moved.is_set()
    assert await there.leave(str(folder)) == 0
    assert moved.is_set() and not there.moved().is_set()
