"""The life of folders: what comes, changes, moves and goes, and what is known of it afterwards."""

import asyncio
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database as Tables

from app.documents.document import FileState
from app.documents.intake import READER_VERSION
from app.documents.library import Library
from app.documents.overview import backlog, status_of
from app.documents.rows import Root, roots, wait_again
from app.documents.scan import MANY
from engine.errors import DiskFull, UsageError
from tests.fakes_documents import FakeReader
from tests.waiting import until

WORDS = ["river", "house", "candle", "garden", "weather", "contract", "paint", "number"]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def states(library: Library) -> dict[str, str]:
    status = await library.ask(status_of)
    assert sum(status.counts.values()) == len(status.files)
    return {Path(file.path).name: file.state.value for file in status.files}


async def looked(library: Library) -> None:
    await library.look()
    await library.settled()


async def added(library: Library, path: Path) -> None:
    await library.add(path)
    await library.settled()


async def paths(library: Library, question: str) -> list[str]:
    return [Path(path).name for hit in (await library.find(question)).hits for path in hit.paths]


async def test_every_file_of_a_folder_ends_in_one_state(library: Library, folder: Path) -> None:
    write(folder / "a.txt", "The river Inn.")
    write(folder / "deep/er/b.txt", "The river Rhine.\fMore.\f")
    write(folder / "empty.txt", "")
    write(folder / "blank.txt", " \f ")
    write(folder / "bad.txt", "DAMAGED")
    write(folder / "odd.bin", "UNSUPPORTED")
    write(folder / "locked.txt", "LOCKED:secret\nThe river Danube.")
    await added(library, folder)
    assert await states(library) == {
        "a.txt": "indexed",
        "b.txt": "indexed",
        "empty.txt": "empty",
        "blank.txt": "no text",
        "bad.txt": "damaged",
        "odd.bin": "unsupported",
        "locked.txt": "needs password",
    }
    found = {Path(file.path).name: file for file in (await library.ask(status_of)).files}
    assert (found["b.txt"].num_pages, found["b.txt"].message) == (3, "1 of 3 pages has no text.")
    assert found["bad.txt"].message == "It is damaged: bring it again."
    assert sorted(await paths(library, "river")) == ["a.txt", "b.txt"]


async def test_what_has_not_changed_is_not_opened(
    library: Library, folder: Path, reader: FakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(folder / f"{number}.txt", f"Text {number}.")
    write(folder / "bad.txt", "DAMAGED")
    await added(library, folder)
    assert len(reader.read_paths) == 21
    monkeypatch.setattr("app.documents.intake.sha256_of", _fail)
    monkeypatch.setattr("app.documents.roots.sha256_of", _fail)
    await looked(library)
    assert len(reader.read_paths) == 21


def _fail(path: str) -> str:
    raise AssertionError(f"{path} was opened")


async def test_a_changed_file_is_read_again_and_its_old_words_are_gone(
    library: Library, folder: Path
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    write(file, "The river Rhine, and more.")
    await looked(library)
    assert await paths(library, "Inn") == []
    assert await paths(library, "Rhine") == ["a.txt"]


async def test_a_touched_file_is_hashed_and_not_read(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    os.utime(file, ns=(1, 1))
    await looked(library)
    assert len(reader.read_paths) == 1
    assert await states(library) == {"a.txt": "indexed"}


async def test_the_same_bytes_are_read_once_and_have_all_their_names(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    for name in ("a.txt", "b.txt", "c/a.txt"):
        write(folder / name, "The river Inn.")
    await added(library, folder)
    assert len(reader.read_paths) == 1
    assert sorted(await paths(library, "Inn")) == ["a.txt", "a.txt", "b.txt"]
    (folder / "a.txt").unlink()
    await looked(library)
    assert sorted(await paths(library, "Inn")) == ["a.txt", "b.txt"]


async def test_a_rename_costs_nothing(library: Library, folder: Path, reader: FakeReader) -> None:
    write(folder / "a.txt", "The river Inn.")
    write(folder / "old/b.txt", "The river Rhine.")
    await added(library, folder)
    (folder / "a.txt").rename(folder / "new.txt")
    (folder / "old").rename(folder / "moved")
    await looked(library)
    assert len(reader.read_paths) == 2
    assert await paths(library, "Inn") == ["new.txt"]
    assert await states(library) == {"new.txt": "indexed", "b.txt": "indexed"}


async def test_a_deleted_file_is_gone_at_once_from_everything(
    library: Library, folder: Path, room: Path
) -> None:
    file = write(folder / "a.txt", "The zeugma river.")
    write(folder / "b.txt", "Another thing.")
    await added(library, folder)
    file.unlink()
    await looked(library)
    assert await states(library) == {"b.txt": "indexed"}
    assert await paths(library, "zeugma") == []
    await library.close()
    files = b"".join(each.read_bytes() for each in room.glob("documents.sqlite3*"))
    assert b"Another thing" in files
    assert b"zeugma" not in files


async def test_a_missing_folder_deletes_nothing_and_comes_back(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    away = folder.rename(folder.parent / "away")
    await looked(library)
    assert await states(library) == {"a.txt": "offline"}
    assert await paths(library, "Inn") == ["a.txt"]
    folder.mkdir()
    await looked(library)
    assert await states(library) == {"a.txt": "offline"}, "a mount point without its disk"
    folder.rmdir()
    away.rename(folder)
    await looked(library)
    assert await states(library) == {"a.txt": "indexed"}
    assert len(reader.read_paths) == 1


async def test_a_suddenly_empty_folder_is_believed_when_a_person_says_so(
    library: Library, folder: Path
) -> None:
    files = [write(folder / f"{number}.txt", f"Text {number}.") for number in range(MANY + 1)]
    await added(library, folder)
    for file in files:
        file.unlink()
    await looked(library)
    assert set((await states(library)).values()) == {"offline"}
    await added(library, folder)
    assert await states(library) == {}


async def test_what_waits_in_a_folder_that_is_away_stays_and_holds_up_nothing(
    library: Library, folder: Path, reader: FakeReader, room: Path
) -> None:
    reader.gate.clear()
    write(folder / "a.txt", "The river Inn.")
    await library.add(folder)
    folder.rename(room / "away")
    # Nobody has looked yet: it is the reading that meets the gap.
    reader.gate.set()
    await library.settled()
    assert await states(library) == {"a.txt": "offline"}
    (room / "away").rename(folder)
    await looked(library)
    assert await states(library) == {"a.txt": "indexed"}


async def test_a_failed_file_is_tried_again_when_it_changes_or_on_request(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    file = write(folder / "a.txt", "DAMAGED")
    await added(library, folder)
    await looked(library)
    assert len(reader.read_paths) == 1
    await added(library, file)
    assert len(reader.read_paths) == 2
    write(file, "It is whole again.")
    await looked(library)
    assert await states(library) == {"a.txt": "indexed"}


async def test_a_password_opens_a_file_and_is_forgotten(
    library: Library, folder: Path, reader: FakeReader, room: Path
) -> None:
    file = write(folder / "a.txt", "LOCKED:pa55word\nThe river Inn.")
    await added(library, folder)
    await library.add(file, password="wrong")
    await library.settled()
    assert await states(library) == {"a.txt": "needs password"}
    await library.add(folder, password="pa55word")
    await library.settled()
    assert await paths(library, "Inn") == ["a.txt"]
    assert reader.passwords == ["", "wrong", "pa55word"]
    write(file, "LOCKED:pa55word\nThe river Rhine.")
    await looked(library)
    assert await states(library) == {"a.txt": "needs password"}
    assert await paths(library, "Inn") == []
    await library.close()
    for each in room.glob("documents.sqlite3*"):
        assert b"pa55word" not in each.read_bytes()


async def test_a_password_reaches_what_is_read_while_its_folder_is_looked_at(
    library: Library, folder: Path, reader: FakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_at = library._roots.look_at

    async def slow(root: Root, *, is_asked: bool = False) -> None:
        await look_at(root, is_asked=is_asked)
        if is_asked:
            library._intake.background.wake()
            await library._intake.background.settled()

    monkeypatch.setattr(library._roots, "look_at", slow)
    write(folder / "a.txt", "LOCKED:x\nThe river Inn.")
    await library.add(folder, password="x")
    await library.settled()
    assert reader.passwords == ["x"]
    assert await paths(library, "Inn") == ["a.txt"]


async def test_a_password_is_not_forgotten_with_what_was_read_before(
    library: Library, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.txt", "LOCKED:x\nThe river Inn.")
    await added(library, folder)

    def at_the_end(tables: Tables, place: str, states: Iterable[FileState]) -> None:
        # As when the work that is going on finds in this moment that nothing waits.
        library._intake._passwords.clear()
        wait_again(tables, place, states)

    monkeypatch.setattr("app.documents.library.wait_again", at_the_end)
    await library.add(folder, password="x")
    await library.settled()
    assert await paths(library, "Inn") == ["a.txt"]


async def test_a_password_that_comes_while_its_file_is_read_is_used(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    file = write(folder / "a.txt", "LOCKED:x\nThe river Inn.")
    reader.lock.clear()
    await library.add(folder)
    await until(lambda: reader.read_paths)
    await library.add(file, password="x")
    reader.lock.set()
    await library.settled()
    assert reader.passwords == ["", "x"]
    assert await paths(library, "Inn") == ["a.txt"]


async def test_nothing_of_our_own_home_is_read(room: Path, folder: Path) -> None:
    home = folder / "home"
    write(home / "data/api-key.txt", "The zeugma key.")
    write(home / "notes.txt", "The zeugma river.")
    library = Library(room / "documents.sqlite3", FakeReader(), [home / "data", home / "cache"])
    await added(library, folder)
    assert await states(library) == {"notes.txt": "indexed"}
    (folder / "link").symlink_to(home / "data")
    for place in (home / "data", home / "data/api-key.txt", folder / "link"):
        with pytest.raises(UsageError, match="belongs to Inglenook itself"):
            await library.add(place)
    assert [root.path for root in await library.ask(roots)] == [str(folder)]
    await library.close()


async def test_a_library_that_cannot_be_prepared_is_tried_again(
    room: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder / "a.txt", "The river Inn.")
    library = Library(room / "documents.sqlite3", FakeReader())
    await added(library, folder)
    write(folder / "b.txt", "The river Rhine.")
    failures = [DiskFull("There is no room left."), DiskFull("There is no room left.")]
    prepare = library.prepare

    async def failing() -> None:
        if failures:
            raise failures.pop()
        await prepare()

    monkeypatch.setattr(library, "prepare", failing)
    monkeypatch.setattr("app.documents.watch.TRY_AGAIN_S", 0.01)
    library.follow()
    while await paths(library, "Rhine") != ["b.txt"]:
        await asyncio.sleep(0.01)
    assert failures == [] and caplog.text.count("no room left") == 2
    await library.close()


async def test_a_file_that_is_named_is_read_again_though_it_seems_the_same(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    write(folder / "b.txt", "The other one.")
    await added(library, folder)
    seen = file.stat()
    write(file, "The river Aar.")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    await added(library, folder)
    assert await paths(library, "Inn") == ["a.txt"]
    await added(library, file)
    assert await paths(library, "Aar") == ["a.txt"]
    await added(library, file)
    assert len(reader.read_paths) == 3
    assert await states(library) == {"a.txt": "indexed", "b.txt": "indexed"}


async def test_the_folder_around_another_takes_its_files_along(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "in/a.txt", "The river Inn.")
    write(folder / "b.txt", "The river Rhine.")
    await added(library, folder / "in")
    await added(library, folder)
    await added(library, folder / "in" / "a.txt")
    assert [root.path for root in await library.ask(roots)] == [str(folder)]
    assert await states(library) == {"a.txt": "indexed", "b.txt": "indexed"}
    assert len(reader.read_paths) == 2


async def test_a_hidden_folder_can_be_added_by_its_name(library: Library, folder: Path) -> None:
    write(folder / ".notes/a.txt", "The river Inn.")
    await added(library, folder)
    assert await states(library) == {}
    await added(library, folder / ".notes")
    await looked(library)
    assert await states(library) == {"a.txt": "indexed"}


async def test_removing_forgets_what_was_read_and_leaves_the_files(
    library: Library, folder: Path, room: Path
) -> None:
    file = write(folder / "a.txt", "The zeugma river.")
    await added(library, folder)
    with pytest.raises(UsageError, match="lies in"):
        await library.remove(file)
    assert await library.remove(folder) == 1
    assert await paths(library, "zeugma") == []
    assert file.exists()
    with pytest.raises(UsageError, match="not in the library"):
        await library.remove(folder)
    await library.close()
    for each in room.glob("documents.sqlite3*"):
        assert b"zeugma" not in each.read_bytes()


async def test_what_is_removed_while_it_is_read_does_not_come_back(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "The river Inn.")
    reader.gate.clear()
    await library.add(folder)
    while not reader.read_paths:
        await asyncio.sleep(0.01)
    await library.remove(folder)
    reader.gate.set()
    await library.settled()
    assert await states(library) == {}
    assert await paths(library, "Inn") == []


async def test_a_question_does_not_wait_for_a_file_that_is_read(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    write(folder / "b.txt", "The river Rhine.\fMore.")
    reader.gate.clear()
    await library.look()
    while len(reader.read_paths) < 2:
        await asyncio.sleep(0.01)
    assert await paths(library, "river") == ["a.txt"]
    assert (await library.ask(backlog)).num_files == 1
    reader.gate.set()
    await library.settled()
    assert sorted(await paths(library, "river")) == ["a.txt", "b.txt"]


async def test_a_file_that_is_replaced_while_it_is_read_is_read_as_it_is_then(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    file = write(folder / "a.txt", "The river Inn.")
    reader.gate.clear()
    await library.add(folder)
    while not reader.read_paths:
        await asyncio.sleep(0.01)
    write(file, "The river Rhine, of another length.")
    reader.gate.set()
    await library.settled()
    assert await paths(library, "Inn") == []
    assert await paths(library, "Rhine") == ["a.txt"]
    await looked(library)
    assert len(reader.read_paths) == 2


async def test_a_file_that_never_rests_is_left_to_the_next_look(room: Path, folder: Path) -> None:
    class Restless(FakeReader):
        def read(self, path: Path, **options: object):  # type: ignore[no-untyped-def,override]
            write(path, path.read_text() + " and more")
            return super().read(path)

    file = write(folder / "log.txt", "A line")
    library = Library(room / "documents.sqlite3", Restless())
    await added(library, folder)
    assert await states(library) == {"log.txt": "failed"}
    assert "changes while it is read" in (await library.ask(status_of)).files[0].message
    assert len(file.read_text().split("and more")) == 3
    await library.close()


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="nothing is closed to root")
async def test_a_file_that_may_not_be_read_says_so(library: Library, folder: Path) -> None:
    write(folder / "a.txt", "The river Inn.").chmod(0)
    await added(library, folder)
    assert await states(library) == {"a.txt": "failed"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
async def test_names_that_are_no_text_can_be_read_and_found(library: Library, folder: Path) -> None:
    with open(os.path.join(os.fsencode(folder), b"caf\xe9 \n.txt"), "w") as file:
        file.write("The river Inn.")
    await added(library, folder)
    (hit,) = (await library.find("Inn")).hits
    assert os.fsencode(hit.paths[0]).endswith(b"caf\xe9 \n.txt")
    assert Path(hit.paths[0]).read_text() == "The river Inn."
    await looked(library)
    assert len((await library.ask(status_of)).files) == 1


@pytest.mark.parametrize("name", ["missing", "pipe"])
async def test_only_folders_and_files_can_be_added(
    library: Library, folder: Path, name: str
) -> None:
    if name == "pipe":
        os.mkfifo(folder / name)
    with pytest.raises(UsageError):
        await library.add(folder / name)
    assert await library.ask(roots) == []


async def test_an_empty_library_finds_nothing(library: Library) -> None:
    found = await library.find("anything")
    assert found.hits == () and not found.is_enough


async def test_what_an_older_version_has_read_is_read_again(
    room: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "a.txt", "The river Inn.")
    write(folder / "b.txt", "LOCKED:x\nThe river Rhine.")
    write(folder / "c.bin", "UNSUPPORTED")
    write(folder / "d.txt", "FAILED")
    write(folder / "e.txt", "DAMAGED")
    first = Library(room / "documents.sqlite3", FakeReader())
    await first.add(folder, password="x")
    await first.settled()
    await first.close()
    for module in ("intake", "library"):
        monkeypatch.setattr(f"app.documents.{module}.READER_VERSION", READER_VERSION + 1)
    for expected in (4, 0):
        reader = FakeReader()
        again = Library(room / "documents.sqlite3", reader)
        await again.prepare()
        await again.settled()
        assert len(reader.read_paths) == expected
        assert sorted(await paths(again, "river")) == ["a.txt", "b.txt"]
        await again.close()


async def test_the_library_is_made_again_from_the_files(room: Path, folder: Path) -> None:
    write(folder / "a.txt", "The river Inn.")
    path = room / "documents.sqlite3"
    library = Library(path, FakeReader())
    await added(library, folder)
    before = contents(path)
    await library.close()
    for each in room.glob("documents.sqlite3*"):
        each.unlink()
    library = Library(path, FakeReader())
    await added(library, folder)
    assert contents(path) == before
    await library.close()


Act = Callable[[Path, random.Random], None]


def _file(folder: Path, drawn: random.Random) -> Path | None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return drawn.choice(files) if files else None


def _write(folder: Path, drawn: random.Random) -> None:
    text = " ".join(drawn.choices(WORDS, k=drawn.randint(0, 30)))
    special = drawn.choice(["", "", "", "", "DAMAGED ", "\f"])
    write(folder / drawn.choice("abc") / f"{drawn.randint(0, 9)}.txt", special + text)


def _delete(folder: Path, drawn: random.Random) -> None:
    if file := _file(folder, drawn):
        file.unlink()


def _rename(folder: Path, drawn: random.Random) -> None:
    if file := _file(folder, drawn):
        file.replace(file.with_name(f"{drawn.randint(0, 9)}.txt"))


def _copy(folder: Path, drawn: random.Random) -> None:
    if file := _file(folder, drawn):
        target = file.with_name(f"{drawn.randint(0, 9)}.txt")
        if target != file:
            shutil.copy2(file, target)


def _touch(folder: Path, drawn: random.Random) -> None:
    if file := _file(folder, drawn):
        os.utime(file, ns=(drawn.randint(1, 10**9), drawn.randint(1, 10**18)))


ACTS: tuple[Act, ...] = (_write, _write, _write, _delete, _rename, _copy, _touch)


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that is kept, without the numbers of rows, which tell when something came."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            query: sorted(connection.execute(query).fetchall(), key=repr)
            for query in (
                "select path, file.state, sha256 from file left join document"
                " on document.id = document_id",
                "select sha256, number, text from page join document on document.id = document_id",
                "select sha256, page_from, page_to, start, end, heading from passage"
                " join document on document.id = document_id",
                "select * from passage_term",
            )
        }


@pytest.mark.parametrize("seed", range(6))
async def test_after_any_history_the_index_is_that_of_a_fresh_one(
    room: Path, folder: Path, seed: int
) -> None:
    drawn = random.Random(seed)
    library = Library(room / "documents.sqlite3", FakeReader())
    await added(library, folder)
    for _ in range(12):
        for _ in range(drawn.randint(1, 5)):
            drawn.choice(ACTS)(folder, drawn)
            # Two writes in one tick of the file system's clock would look like one.
            time.sleep(0.002)
        if drawn.random() < 0.8:
            await looked(library)
    await looked(library)
    await library.close()
    fresh = Library(room / "fresh.sqlite3", FakeReader())
    await added(fresh, folder)
    await fresh.close()
    assert contents(room / "documents.sqlite3") == contents(room / "fresh.sqlite3")


async def test_states_are_words_that_programs_can_rely_on() -> None:
    assert [state.value for state in FileState] == [
        "waiting",
        "indexed",
        "no text",
        "needs password",
        "damaged",
        "empty",
        "too large",
        "unsupported",
        "offline",
        "failed",
    ]


async def test_of_the_folders_of_our_own_only_what_was_received_is_read(
    room: Path, reader: FakeReader
) -> None:
    data = room / "home" / "data"
    received = write(data / "received" / "a.txt", "All about vineyards.").parent
    write(data / "key.txt", "A secret about vineyards.")
    write(room / "home" / "mine.txt", "My vineyards.")
    library = Library(room / "own.sqlite3", reader, (data,), received=received)
    await added(library, received)
    assert await paths(library, "vineyards") == ["a.txt"]
    with pytest.raises(UsageError, match="belongs to Inglenook itself"):
        await library.add(data / "key.txt")
    # A folder around it does not take it over, nor come to it.
    await added(library, room / "home")
    assert {Path(root.path).name for root in await library.ask(roots)} == {"received", "home"}
    write(received / "b.txt", "More vineyards.")
    await added(library, received)
    assert sorted(await paths(library, "vineyards")) == ["a.txt", "b.txt", "mine.txt"]
    await library.close()
