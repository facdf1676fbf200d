import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.history.backups import Backups


@pytest.fixture
def source(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table conversation(id text)")
    connection.execute("insert into conversation values ('held')")
    connection.commit()
    return connection


def test_a_backup_is_a_whole_copy_without_other_files(
    path: Path, source: sqlite3.Connection
) -> None:
    made = Backups(path).make(source, 1)
    with closing(sqlite3.connect(made)) as copy:
        assert copy.execute("select id from conversation").fetchall() == [("held",)]
    assert list(path.parent.iterdir()) == [made]


def test_backups_are_counted_by_schema_and_not_by_name(
    path: Path, source: sqlite3.Connection
) -> None:
    backups = Backups(path)
    for schema in (8, 9, 10, 11):
        backups.make(source, schema)
    assert [each.stem for each in backups.paths()] == [
        "history.backup-v9",
        "history.backup-v10",
        "history.backup-v11",
    ]


def test_other_files_are_no_backups(path: Path) -> None:
    for name in ("history.backup-vx.sqlite3", "other.backup-v1.sqlite3", "history.sqlite3"):
        path.with_name(name).touch()
    assert Backups(path).paths() == []


def test_only_backups_that_hold_the_conversation_are_forgotten(
    path: Path, source: sqlite3.Connection
) -> None:
    backups = Backups(path)
    backups.make(source, 1)
    backups.forget(["another"])
    assert len(backups.paths()) == 1
    backups.forget(["another", "held"])
    assert backups.paths() == []


def test_a_backup_that_cannot_be_read_is_forgotten(path: Path) -> None:
    path.with_name("history.backup-v1.sqlite3").write_bytes(b"what may this be? " * 99)
    Backups(path).forget(["held"])
    assert list(path.parent.iterdir()) == []
