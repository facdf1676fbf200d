import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_utils import Database as Tables

from app.history.database import HISTORY, Database
from app.history.migrations import MIGRATIONS, Step, migrate, version
from app.history.rows import conversation_from_row, message_from_row


def first(db: Tables) -> None:
    db.table("conversation").create({"id": str}, pk="id")


def second(db: Tables) -> None:
    db.execute("alter table conversation add column colour text default 'red'")


def third(db: Tables) -> None:
    db.execute("create table third (id text)")


def fourth(db: Tables) -> None:
    db.execute("create table fourth (id text)")


def failing(db: Tables) -> None:
    db.execute("delete from conversation")
    db.execute("create table half (id text)")
    raise LookupError("a step that fails")


def add(path: Path, steps: Sequence[Step], name: str) -> None:
    with Database(path, replace(HISTORY, steps=steps)) as database:
        database.run_sync(lambda db: db.execute("insert into conversation(id) values (?)", [name]))


def rows(path: Path, steps: Sequence[Step]) -> list[dict[str, str]]:
    with Database(path, replace(HISTORY, steps=steps)) as database:
        return database.run_sync(lambda db: list(db.query("select * from conversation")))


def backups(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if "backup" in file.name)


def test_an_empty_file_becomes_a_history(path: Path) -> None:
    path.touch()
    with Database(path) as database:
        assert database.run_sync(version) == len(MIGRATIONS)
        assert {"conversation", "message"} <= set(database.run_sync(lambda db: db.table_names()))
    assert backups(path) == []


def test_migrating_twice_is_migrating_once(path: Path) -> None:
    with Database(path) as database:
        schema = database.run_sync(lambda db: db.schema)
    with Database(path) as database:
        assert database.run_sync(lambda db: db.schema) == schema


def test_an_old_history_keeps_its_rows_and_leaves_a_backup(path: Path) -> None:
    add(path, [first], "old")
    assert rows(path, [first, second]) == [{"id": "old", "colour": "red"}]
    assert backups(path) == ["history.backup-v1.sqlite3"]
    backup = path.with_name("history.backup-v1.sqlite3")
    assert stat.S_IMODE(backup.stat().st_mode) & 0o077 == 0
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("select * from conversation").fetchall() == [("old",)]
        assert copy.execute("pragma user_version").fetchone() == (1,)


def test_a_backup_put_in_the_place_of_the_history_works(path: Path) -> None:
    add(path, [first], "old")
    rows(path, [first, second])
    path.with_name("history.backup-v1.sqlite3").replace(path)
    assert rows(path, [first]) == [{"id": "old"}]


def test_a_step_that_fails_leaves_the_old_history_usable(path: Path) -> None:
    add(path, [first], "old")
    with pytest.raises(LookupError):
        Database(path, replace(HISTORY, steps=[first, second, failing]))
    assert rows(path, [first]) == [{"id": "old"}]
    assert rows(path, [first, second]) == [{"id": "old", "colour": "red"}]


def test_the_last_three_backups_are_kept(path: Path) -> None:
    steps: list[Step] = [first, second, third, fourth, lambda _: None]
    for number in range(1, len(steps) + 1):
        add(path, steps[:number], f"row {number}")
    assert backups(path) == [f"history.backup-v{number}.sqlite3" for number in (2, 3, 4)]


def test_steps_that_were_taken_are_not_taken_again() -> None:
    tables = Tables(sqlite3.connect(":memory:", isolation_level=None))
    migrate(tables, [first])
    migrate(tables, [failing, second])
    assert version(tables) == 2
    assert set(tables.table("conversation").columns_dict) == {"id", "colour"}


def test_a_conversation_of_the_first_version_has_left_nothing_out(path: Path) -> None:
    with Database(path, replace(HISTORY, steps=MIGRATIONS[:1])) as database:
        database.run_sync(
            lambda db: db.execute(
                "insert into conversation(id, title, created_at, updated_at, system_prompt,"
                " sampling) values ('c', '', 0, 0, '', '{}')"
            )
        )
        database.run_sync(
            lambda db: db.execute(
                "insert into message(id, conversation_id, depth, role, state, created_at, content)"
                " values ('m', 'c', 1, 'user', 'done', 0, 'Hello')"
            )
        )
    with Database(path) as database:
        (conversation,) = database.run_sync(lambda db: list(db.query("select * from conversation")))
        (message,) = database.run_sync(lambda db: list(db.query("select * from message")))
        assert (conversation["overflow"], message["seen"]) == ("ask", "{}")
        found = database.run_sync(
            lambda db: list(db.query("select * from message_fts where content match 'Hello'"))
        )
        assert len(found) == 1


def test_a_conversation_of_the_third_version_answers_in_text(path: Path) -> None:
    with Database(path, replace(HISTORY, steps=MIGRATIONS[:3])) as database:
        for query in (
            "insert into conversation(id, title, created_at, updated_at, system_prompt, sampling)"
            " values ('c', '', 0, 0, '', '{}')",
            "insert into message(id, conversation_id, depth, role, state, created_at, content,"
            " thinking, finish_reason, notice, model, token_ids, timings)"
            " values ('m', 'c', 1, 'user', 'done', 0, 'Hello', '', '', '', '', x'', '{}')",
        ):
            database.run_sync(lambda db, query=query: db.execute(query))
    with Database(path) as database:
        (conversation,) = database.run_sync(lambda db: list(db.query("select * from conversation")))
        (message,) = database.run_sync(lambda db: list(db.query("select * from message")))
        assert conversation_from_row(conversation).answer_form is None
        assert message_from_row(message).made_in is None
