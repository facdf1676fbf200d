"""Collections name places; a question can be asked of some of them only."""

from pathlib import Path

import pytest

from app.documents.collections import collections
from app.documents.library import Library
from app.documents.overview import status_of
from app.documents.rows import roots
from engine.errors import UsageError
from tests.app.documents.test_library import paths, write


@pytest.fixture
async def filled(library: Library, folder: Path) -> Library:
    write(folder / "work/a.txt", "The river Inn.")
    write(folder / "home/b.txt", "The river Rhine.")
    write(folder / "homework/c.txt", "The river Danube.")
    await library.add(folder / "work", collection="job")
    await library.add(folder / "home", collection="private")
    await library.add(folder / "homework" / "c.txt", collection="school")
    await library.settled()
    return library


async def found(library: Library, *names: str) -> list[str]:
    hits = (await library.find("river", collections=names)).hits
    return sorted(Path(hit.paths[0]).name for hit in hits)


async def test_a_name_that_cannot_be_shown_is_refused(filled: Library, folder: Path) -> None:
    write(folder / "new.txt", "The river Elbe.")
    for name in ("\u202ebackwards", "be\x07ll", "two\nlines"):
        with pytest.raises(UsageError, match="characters that nobody sees"):
            await filled.collect(name, folder / "home")
        with pytest.raises(UsageError, match="characters that nobody sees"):
            await filled.add(folder / "new.txt", collection=name)
    assert list(await filled.ask(collections)) == ["job", "private", "school"]
    assert len(await filled.ask(roots)) == 3


async def test_a_question_is_asked_of_what_was_chosen(filled: Library) -> None:
    assert await found(filled) == ["a.txt", "b.txt", "c.txt"]
    assert await found(filled, "job") == ["a.txt"]
    assert await found(filled, "private") == ["b.txt"]
    assert await found(filled, "job", "school") == ["a.txt", "c.txt"]
    assert [
        Path(file.path).name
        for file in (await filled.ask(lambda tables: status_of(tables, collection="job"))).files
    ] == ["a.txt"]


async def test_a_collection_that_is_not_there_is_said_to_be_so(
    filled: Library, library: Library
) -> None:
    with pytest.raises(UsageError, match="there are job, private, school"):
        await found(filled, "jobs")
    with pytest.raises(UsageError):
        await filled.ask(lambda tables: status_of(tables, collection="' or 1=1"))


async def test_only_the_paths_of_a_collection_are_shown(filled: Library, folder: Path) -> None:
    write(folder / "home/copy.txt", "The river Inn.")
    await filled.look()
    await filled.settled()
    (hit,) = (await filled.find("river", collections=["job"])).hits
    assert [Path(path).name for path in hit.paths] == ["a.txt"]


async def test_a_part_of_a_folder_can_be_a_collection(filled: Library, folder: Path) -> None:
    await filled.add(folder)
    await filled.add(folder / "work" / "a.txt", collection="one file")
    await filled.settled()
    assert len(await filled.ask(roots)) == 1
    assert await found(filled, "one file") == ["a.txt"]
    assert await found(filled, "job") == ["a.txt"]


async def test_taking_out_of_a_collection_leaves_the_library(filled: Library, folder: Path) -> None:
    assert await filled.remove(folder / "work", collection="job") == 0
    assert sorted(await filled.ask(collections)) == ["private", "school"]
    assert await paths(filled, "Inn") == ["a.txt"]
    with pytest.raises(UsageError, match="not in the collection"):
        await filled.remove(folder / "work", collection="private")


async def test_what_leaves_the_library_leaves_its_collections(
    filled: Library, folder: Path
) -> None:
    await filled.remove(folder / "work")
    assert sorted(await filled.ask(collections)) == ["private", "school"]
