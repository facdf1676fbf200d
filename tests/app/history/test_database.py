import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database as Tables

from app.chat.message import MessageState
from app.history.conversations import Conversations
from app.history.database import HISTORY, Database
from engine.errors import DatabaseNewer, DiskFull, HistoryError, NotFound

ROOT = Path(__file__).parents[3]
NOBODY = 65534


def insert(text: str) -> Any:
    return lambda tables: tables.execute(
        "insert into conversation(id, title, created_at, updated_at, system_prompt, sampling)"
        " values (?, ?, 0, 0, '', '{}')",
        [text, text],
    )


def ids(tables: Tables) -> set[str]:
    return {row["id"] for row in tables.query("select id from conversation")}


def test_what_was_stored_is_there_after_reopening(path: Path) -> None:
    with Database(path) as database:
        database.run_sync(insert("kept"))
    with Database(path) as database:
        assert database.run_sync(ids) == {"kept"}


def test_a_function_that_raises_undoes_all_it_did(database: Database) -> None:
    def half(tables: Tables) -> None:
        insert("half")(tables)
        raise LookupError("on the way")

    with pytest.raises(LookupError):
        database.run_sync(half)
    assert database.run_sync(ids) == set()


def test_all_work_is_done_in_one_thread_that_is_not_the_callers(database: Database) -> None:
    names = {database.run_sync(lambda _: threading.get_ident()) for _ in range(3)}
    assert len(names) == 1
    assert threading.get_ident() not in names


def test_threads_and_loops_that_write_at_once_lose_nothing(database: Database) -> None:
    async def write(name: str) -> None:
        calls = [database.run(insert(f"{name}-{number}")) for number in range(25)]
        await asyncio.gather(*calls)

    threads = [threading.Thread(target=asyncio.run, args=(write(name),)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(database.run_sync(ids)) == 100


async def test_two_processes_take_turns(path: Path, database: Database) -> None:
    with Database(path) as other:
        for number in range(5):
            await database.run(insert(f"a{number}"))
            await other.run(insert(f"b{number}"))
        assert len(await database.run(ids)) == 10


async def test_a_reader_does_not_wait_for_who_writes(path: Path, database: Database) -> None:
    await database.run(insert("stored"))
    begun, go_on = threading.Event(), threading.Event()

    def write(tables: Tables) -> None:
        insert("not yet")(tables)
        begun.set()
        go_on.wait(10)

    with Database(path, is_reader=True) as reader:
        writing = asyncio.ensure_future(database.run(write))
        await asyncio.to_thread(begun.wait, 10)
        assert await asyncio.wait_for(reader.run(ids), 3) == {"stored"}
        go_on.set()
        await writing
        assert await reader.run(ids) == {"stored", "not yet"}


async def test_an_emptied_log_holds_nothing_of_what_was_deleted(
    path: Path, database: Database
) -> None:
    await database.run(insert("zeugma"))
    await database.run(lambda tables: tables.execute("delete from conversation"))
    assert await database.empty_log()
    assert Path(f"{path}-wal").stat().st_size == 0


def test_a_file_is_named_by_what_it_is_for(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    notes = replace(HISTORY, name="list of notes", if_damaged="Write a new one.")
    with pytest.raises(HistoryError, match=r"list of notes at .* Write a new one\."):
        Database(path, notes)


async def test_closing_finishes_what_was_sent_before(path: Path) -> None:
    database = Database(path)
    calls = [asyncio.ensure_future(database.run(insert(str(number)))) for number in range(20)]
    await asyncio.sleep(0)
    database.close()
    await asyncio.gather(*calls)
    with Database(path) as again:
        assert len(again.run_sync(ids)) == 20


async def test_a_closed_history_says_so(path: Path) -> None:
    database = Database(path)
    database.close()
    database.close()
    with pytest.raises(HistoryError, match="is closed"):
        await database.run(ids)
    with pytest.raises(HistoryError, match="is closed"):
        database.run_sync(ids)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_dead_store_thread_keeps_nobody_waiting(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Tables) -> None:
        begun.set()
        go_on.wait(10)

    running = asyncio.ensure_future(database.run(wait))
    await asyncio.to_thread(begun.wait, 10)
    database._calls.put("no call: the thread dies of it")  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(database.run(ids))
    await asyncio.sleep(0)
    go_on.set()
    await running
    with pytest.raises(HistoryError, match="is closed"):
        await asyncio.wait_for(waiting, 10)
    with pytest.raises(HistoryError, match="is closed"):
        await asyncio.wait_for(database.run(ids), 10)


def test_the_store_thread_must_not_wait_for_itself(database: Database) -> None:
    with pytest.raises(RuntimeError):
        database.run_sync(lambda _: database.run_sync(ids))


async def test_a_cancelled_call_that_waits_is_dropped(database: Database) -> None:
    go_on = threading.Event()
    first = asyncio.ensure_future(database.run(lambda _: go_on.wait(10)))
    second = asyncio.ensure_future(database.run(insert("dropped")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    go_on.set()
    assert await first
    assert await database.run(ids) == set()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_every_file_is_readable_by_its_owner_only(path: Path) -> None:
    mask = os.umask(0)
    try:
        with Database(path) as database:
            database.run_sync(insert("private"))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(mask)
    assert modes == {
        "history.sqlite3": 0o600,
        "history.sqlite3-wal": 0o600,
        "history.sqlite3-shm": 0o600,
    }


def test_every_commit_is_synced_and_deleted_text_overwritten(database: Database) -> None:
    def pragma(name: str) -> Any:
        return database.run_sync(lambda tables: tables.execute(f"pragma {name}").fetchone()[0])

    assert pragma("journal_mode") == "wal"
    assert pragma("synchronous") == 2
    assert pragma("secure_delete") == 1
    assert pragma("foreign_keys") == 1


def test_a_newer_history_is_refused_untouched_with_both_numbers(path: Path) -> None:
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("pragma user_version = 73")
    before = path.read_bytes()
    with pytest.raises(DatabaseNewer, match=r"format 73; this version reads up to \d"):
        Database(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"these are my notes, not a database " * 100)
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="is damaged or is no database"):
        Database(path)
    assert path.read_bytes() == before


def test_a_damaged_history_is_reported_in_a_sentence(path: Path) -> None:
    with Database(path) as database:
        for number in range(200):
            database.run_sync(insert(f"{number} " + "x" * 500))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(HistoryError, match="damaged"), Database(path) as database:
        database.run_sync(ids)
    assert path.exists()


def test_a_folder_in_the_place_of_the_history_is_reported(path: Path) -> None:
    path.mkdir()
    with pytest.raises(HistoryError, match="cannot be opened"):
        Database(path)


def test_a_file_in_the_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(HistoryError, match="cannot be opened"):
        Database(tmp_path / "data" / "history.sqlite3")


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no file that is open")
def test_nothing_is_written_into_a_history_that_was_deleted_or_moved(
    path: Path, database: Database
) -> None:
    database.run_sync(insert("kept"))
    away = path.with_name("away.sqlite3")
    path.rename(away)
    with pytest.raises(HistoryError, match="deleted, moved or replaced") as raised:
        database.run_sync(insert("lost"))
    assert str(path) in str(raised.value)
    path.touch()
    with pytest.raises(HistoryError, match="deleted, moved or replaced"):
        database.run_sync(insert("lost"))
    # What is there can be read, and copied.
    assert database.run_sync(ids) == {"kept"}
    away.replace(path)
    database.run_sync(insert("after"))
    assert database.run_sync(ids) == {"kept", "after"}


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no file that is open")
def test_a_reader_may_use_temporary_tables_of_a_file_that_was_moved(
    path: Path, database: Database
) -> None:
    database.run_sync(insert("kept"))

    def asked(tables: Tables) -> set[str]:
        tables.execute("create table if not exists temp.asked (word)")
        tables.execute("insert into temp.asked values ('a')")
        return ids(tables)

    with Database(path, is_reader=True) as reader:
        reader.run_sync(ids)
        path.rename(path.with_name("away.sqlite3"))
        assert reader.run_sync(asked) == {"kept"}


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no file that is open")
async def test_a_message_is_refused_once_the_folder_is_deleted(
    path: Path, database: Database
) -> None:
    chats = Conversations(database)
    conversation = await chats.create("Kept")
    shutil.rmtree(path.parent)
    with pytest.raises(HistoryError, match="deleted, moved or replaced"):
        await chats.begin_turn(conversation.conversation_id, "Hello")
    assert [each.title for each in await chats.list()] == ["Kept"]
    assert await chats.messages(conversation.conversation_id) == []


@pytest.fixture
def foreign_folder() -> Iterator[Path]:
    """A folder that this process may read but not write, even when it began as root."""
    if os.name == "nt":
        pytest.skip("Windows has no such modes")
    # Beside tmp_path: nobody else may enter that.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Database(folder / "history.sqlite3") as database:
            database.run_sync(insert("kept"))
        (folder / "history.sqlite3").chmod(0o444)
        folder.chmod(0o555)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if was_root:
                os.seteuid(0)
            folder.chmod(0o755)


def test_a_folder_that_may_not_be_written_is_reported_with_a_remedy(foreign_folder: Path) -> None:
    with pytest.raises(HistoryError, match="right to read and to write") as raised:
        Database(foreign_folder / "history.sqlite3")
    assert str(foreign_folder) in str(raised.value)
    with pytest.raises(HistoryError, match="right to write"):
        Database(foreign_folder / "other.sqlite3")


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder of a user to whom modes mean something."""
    if os.name == "nt":
        pytest.skip("Windows has no such modes")
    # Beside tmp_path: nobody else may enter that.
    with tempfile.TemporaryDirectory() as name:
        was_root = os.geteuid() == 0
        if was_root:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if was_root:
                os.seteuid(0)


@pytest.mark.parametrize(("mode", "words"), [(0o400, "read but not written"), (0, "not be read")])
def test_a_file_that_gets_its_mode_back_is_opened_again(
    own_folder: Path, mode: int, words: str
) -> None:
    path = own_folder / "history.sqlite3"
    with Database(path) as database:
        database.run_sync(insert("kept"))
    path.chmod(mode)
    with pytest.raises(HistoryError, match=words):
        Database(path)
    assert [each.name for each in own_folder.iterdir()] == ["history.sqlite3"]
    path.chmod(0o600)
    # As an older version has left them.
    for name in ("history.sqlite3-wal", "history.sqlite3-shm"):
        (own_folder / name).touch(0o400)
    with Database(path) as database:
        assert database.run_sync(ids) == {"kept"}
        database.run_sync(insert("after"))


def test_a_history_that_becomes_read_only_is_reported_with_a_remedy(database: Database) -> None:
    database.run_sync(lambda tables: tables.execute("pragma query_only = on"))
    with pytest.raises(HistoryError, match="right to write"):
        database.run_sync(insert("refused"))


def test_a_full_disk_is_told_with_the_room_and_keeps_what_was_stored(
    path: Path, database: Database
) -> None:
    """SQLite answers a page limit as it answers a full disk."""
    database.run_sync(insert("kept"))
    database.run_sync(lambda tables: tables.execute("pragma max_page_count = 1").fetchall())
    with pytest.raises(DiskFull, match="bytes are free") as raised:
        database.run_sync(insert("x" * 300_000))
    assert str(path) in str(raised.value)
    database.run_sync(lambda tables: tables.execute("pragma max_page_count = 100000").fetchall())
    database.run_sync(insert("after"))
    assert database.run_sync(ids) == {"kept", "after"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk needs Linux and its administrator")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_really_full_disk_loses_nothing_that_was_stored(small_disk: Path) -> None:
    path, ballast = small_disk / "history.sqlite3", small_disk / "ballast"
    ballast.write_bytes(b"x" * 100 * 1024)
    stored = set()
    with Database(path) as database:
        with pytest.raises(DiskFull):
            for number in range(200):
                name = f"{number} " + "x" * 5_000
                database.run_sync(insert(name))
                stored.add(name)
        assert stored
        assert database.run_sync(ids) == stored
    ballast.unlink()
    with Database(path) as database:
        assert database.run_sync(ids) == stored


def test_a_disk_full_from_the_start_is_told(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 500 * 1024)
    with pytest.raises(DiskFull):
        Database(small_disk / "history.sqlite3")


def test_a_reader_reads_from_a_disk_that_is_full(small_disk: Path) -> None:
    path = small_disk / "history with spaces.sqlite3"
    with Database(path) as database:
        database.run_sync(insert("kept"))
    with pytest.raises(OSError), open(small_disk / "ballast", "wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    with pytest.raises(DiskFull):
        Database(path)
    with Database(path, is_reader=True) as reader:
        assert reader.run_sync(ids) == {"kept"}
        with pytest.raises(HistoryError):
            reader.run_sync(insert("refused"))
    (small_disk / "ballast").unlink()
    with Database(path) as database:
        assert database.run_sync(ids) == {"kept"}


WRITES_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from app.history.conversations import Conversations
from app.history.database import HISTORY, Database

async def main():
    chats = Conversations(Database(Path(sys.argv[1])))
    conversation = await chats.create()
    turn = await chats.begin_turn(conversation.conversation_id, "What is a hearth?")
    print(conversation.conversation_id, flush=True)
    number = 0
    while True:
        number += 1
        await chats.save_partial(turn.answer.message_id, "word " * number, "thought " * number)
        print(number, flush=True)

asyncio.run(main())
"""


async def test_a_killed_app_has_kept_what_it_was_told_is_stored(path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WRITES_UNTIL_KILLED, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    conversation_id = child.stdout.readline().strip()
    while int(child.stdout.readline()) < 20:
        pass
    child.kill()
    told = [int(line) for line in child.stdout.read().split("\n") if line]
    child.wait()

    with Database(path) as database:
        chats = Conversations(database)
        assert await chats.interrupt_stale() == 1
        user, answer = await chats.messages(conversation_id)
        assert user.content == "What is a hearth?"
        assert answer.state is MessageState.INTERRUPTED
        num_words = answer.content.count("word ")
        assert num_words >= max(told, default=20)
        assert answer.thinking == "thought " * num_words
        assert await chats.interrupt_stale() == 0


async def test_an_unknown_id_is_not_found_and_changes_nothing(database: Database) -> None:
    chats = Conversations(database)
    for call in (chats.get, chats.delete, chats.restore, chats.purge, chats.messages, chats.path):
        with pytest.raises(NotFound, match="nothing-like-it"):
            await call("nothing-like-it")
