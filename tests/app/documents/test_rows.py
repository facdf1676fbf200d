"""Paths as the tables hold them, and which file is read next."""

import os
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_utils import Database as Tables

from app.documents.document import FileState
from app.documents.holding import LIBRARY
from app.documents.rows import (
    add_root,
    files,
    next_waiting,
    note_lost,
    note_sight,
    num_waiting,
    path_from,
    stored,
    under,
)
from app.documents.scan import Changes, Stamp, is_under
from app.history.database import Database

PLACE = os.path.join(os.sep, "papers")
NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=()), min_size=1, max_size=12
)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(None, LIBRARY) as database:
        yield database


def seen(tables: Tables, *names: str) -> None:
    new = {os.path.join(PLACE, name): Stamp(1, 1) for name in names}
    note_sight(tables, 1, "here", Changes(new, {}, frozenset()), {})


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_every_path_can_be_stored_and_comes_back(names: list[str]) -> None:
    path = str(PurePosixPath("/", *names))
    stored(path).encode()
    assert path_from(stored(path)) == path


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "ab", "a%", "a_", "A", "\udce9", "é"]), max_size=4))
def test_the_tables_and_python_agree_on_what_lies_in_a_place(names: list[str]) -> None:
    place, path = str(PurePosixPath("/", "a")), str(PurePosixPath("/", *names))
    condition, values = under("path", place)

    def ask(tables: Tables) -> bool:
        tables.execute("insert into collection values (1, 'all')")
        tables.execute("insert into collected values (1, ?)", [stored(path)])
        return bool(tables.execute(f"select 1 from collected where {condition}", values).fetchall())

    with Database(None, LIBRARY) as database:
        assert database.run_sync(ask) == is_under(path, place)


def test_what_comes_first_is_read_first_and_what_had_a_text_before_all(
    database: Database,
) -> None:
    def prepare(tables: Tables) -> list[str]:
        add_root(tables, PLACE, is_folder=True, takes=[])
        seen(tables, "a", "b", "c")
        tables.execute(
            "insert into document(id, sha256, state, kind, title, notice, num_pages,"
            " num_empty_pages, reader_version) values (5, 'x', 'indexed', '', '', '', 1, 0, 1)"
        )
        tables.execute("update file set document_id = 5 where path like '%c'")
        order = []
        while (waiting := next_waiting(tables)) is not None:
            order.append(os.path.basename(waiting.path))
            tables.execute("update file set state = 'indexed' where id = ?", [waiting.file_id])
        return order

    assert database.run_sync(prepare) == ["c", "a", "b"]


def test_nothing_is_read_of_a_place_that_is_away(database: Database) -> None:
    def away(tables: Tables) -> tuple[object, int, list[FileState]]:
        add_root(tables, PLACE, is_folder=True, takes=[])
        seen(tables, "a")
        note_lost(tables, 1)
        return (
            next_waiting(tables),
            num_waiting(tables, *under("file.path", PLACE)),
            [file.state for file in files(tables)],
        )

    assert database.run_sync(away) == (None, 0, [FileState.OFFLINE])


def test_the_next_file_is_found_without_looking_at_all_of_them(database: Database) -> None:
    def plan(tables: Tables) -> str:
        said: list[str] = []
        tables.conn.set_trace_callback(said.append)
        next_waiting(tables)
        tables.conn.set_trace_callback(None)
        return str(tables.execute(f"explain query plan {said[0]}").fetchall())

    assert "USING INDEX file_waiting" in database.run_sync(plan)
    assert "TEMP B-TREE" not in database.run_sync(plan)
