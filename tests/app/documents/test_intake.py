"""What happens around the reading of one file."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from sqlite_utils import Database as Tables

from app.documents.contents import put_document
from app.documents.document import Facts, Page
from app.documents.library import Library
from app.documents.overview import status_of
from app.documents.sniff import MOST_FILE_BYTES
from engine.errors import DiskFull
from tests.app.documents.test_library import added, states, write
from tests.fakes_documents import FakeReader


async def test_what_is_being_read_is_told_with_its_pages(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "One.\fTwo.\fThree.")
    reader.gate.clear()
    await library.add(folder)
    while library.at_work is None or not library.at_work.num_pages:
        await asyncio.sleep(0.01)
    assert library.at_work.path == str(folder / "a.txt")
    assert (library.at_work.num_read, library.at_work.num_pages) == (0, 3)
    reader.gate.set()
    await library.settled()
    assert library.at_work is None


async def test_what_comes_while_the_last_file_is_read_is_read_too(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    for number in range(30):
        await library.add(write(folder / f"{number}.txt", f"Number {number}."))
        await asyncio.sleep(0.002 * (number % 3))
    await library.settled()
    assert set((await states(library)).values()) == {"indexed"}
    assert len(reader.read_paths) == 30


async def test_a_reader_that_says_nothing_is_no_result(room: Path, folder: Path) -> None:
    class Silent(FakeReader):
        async def read(
            self, path: Path, *, password: str = "", root: Path | None = None
        ) -> AsyncGenerator[Page | Facts, None]:
            return
            yield

    write(folder / "a.txt", "Words.")
    library = Library(room / "documents.sqlite3", Silent())
    await added(library, folder)
    assert await states(library) == {"a.txt": "failed"}
    await library.close()


async def test_other_bytes_than_those_that_were_hashed_are_not_kept(
    room: Path, folder: Path
) -> None:
    class Other(FakeReader):
        async def read(
            self, path: Path, *, password: str = "", root: Path | None = None
        ) -> AsyncGenerator[Page | Facts, None]:
            yield Page(number=1, label="1", text="The river Inn.")
            yield Facts(kind="txt", num_pages=1, sha256="of something else")

    write(folder / "a.txt", "Words.")
    library = Library(room / "documents.sqlite3", Other())
    await added(library, folder)
    assert await states(library) == {"a.txt": "failed"}
    assert (await library.find("Inn")).hits == ()
    await library.close()


async def test_closing_ends_the_reader_and_keeps_what_waits(room: Path, folder: Path) -> None:
    write(folder / "a.txt", "The river Inn.")
    reader = FakeReader()
    reader.gate.clear()
    library = Library(room / "documents.sqlite3", reader)
    await library.add(folder)
    while not reader.read_paths:
        await asyncio.sleep(0.01)
    await asyncio.wait_for(library.close(), 5)
    assert reader.is_closed
    again = Library(room / "documents.sqlite3", FakeReader())
    await again.prepare()
    await again.settled()
    assert await states(again) == {"a.txt": "indexed"}
    await again.close()


@pytest.mark.parametrize(("num_bytes", "state"), [(0, "empty"), (MOST_FILE_BYTES + 1, "too large")])
async def test_what_is_not_read_is_not_hashed_either(
    library: Library,
    folder: Path,
    reader: FakeReader,
    monkeypatch: pytest.MonkeyPatch,
    num_bytes: int,
    state: str,
) -> None:
    monkeypatch.setattr("app.documents.intake.sha256_of", _fail)
    with open(folder / "a.bin", "wb") as file:
        file.truncate(num_bytes)
    await added(library, folder)
    (found,) = (await library.ask(status_of)).files
    assert (found.state.value, found.message[:10]) == (
        state,
        "a.bin has " if num_bytes else "a.bin is e",
    )
    assert reader.read_paths == []


def _fail(path: str) -> str:
    raise AssertionError(f"{path} was opened")


async def test_a_file_for_which_there_is_no_room_keeps_no_smaller_one_waiting(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch, reader: FakeReader
) -> None:
    def put(tables: Tables, sha256: str, version: int, facts: Facts, pages: Sequence[Page]) -> int:
        if len(pages[0].text) > 50:
            raise DiskFull("There is no room left.")
        return put_document(tables, sha256, version, facts, pages)

    monkeypatch.setattr("app.documents.intake.put_document", put)
    reader.gate.clear()
    for name, text in (("a", "Long. " * 100), ("b", "Longer. " * 100), ("c", "Short.")):
        await library.add(write(folder / f"{name}.txt", text))
    reader.gate.set()
    with pytest.raises(DiskFull):
        await library.settled()
    assert await states(library) == {"a.txt": "waiting", "b.txt": "waiting", "c.txt": "indexed"}
    # The longer one was not even tried.
    assert [Path(path).name for path in reader.read_paths] == ["a.txt", "c.txt"]
    monkeypatch.undo()
    await added(library, folder)
    assert set((await states(library)).values()) == {"indexed"}
