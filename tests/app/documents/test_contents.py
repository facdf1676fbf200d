"""A document is there with all of it, or not at all."""

from collections.abc import Iterator

import pytest
from sqlite_utils import Database as Tables

from app.documents import contents
from app.documents.contents import (
    forget_unused,
    make_index_if_old,
    merge_index,
    put_document,
)
from app.documents.document import Facts, Page, PageFlag
from app.documents.holding import LIBRARY
from app.history.database import Database

FACTS = Facts(kind="txt", num_pages=2, title="Title \ud800", notice="Notice.")
PAGES = [
    Page(number=1, label="i", text="The river Inn.", flags=frozenset({PageFlag.OCR})),
    Page(number=2, label="ii", text="Half a character: \ud800."),
]
TABLES = ("document", "page", "passage", "passage_fts", "passage_term")


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(None, LIBRARY) as database:
        database.run_sync(make_index_if_old)
        yield database


def counts(tables: Tables) -> list[int]:
    return [tables.execute(f"select count(*) from {name}").fetchone()[0] for name in TABLES]


def put(tables: Tables) -> int:
    return put_document(tables, "digest", 1, FACTS, PAGES)


def test_pages_keep_what_was_said_of_them(database: Database) -> None:
    database.run_sync(put)
    rows = database.run_sync(
        lambda tables: tables.execute("select number, label, flags, text from page").fetchall()
    )
    assert rows == [
        (1, "i", "read by OCR", "The river Inn."),
        (2, "ii", "", "Half a character: \ufffd."),
    ]


def test_what_fails_half_way_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed: list[str] = []

    def fail(text: str) -> str:
        indexed.append(text)
        if len(indexed) == 4:
            raise LookupError("in the middle")
        return text

    monkeypatch.setattr(contents, "index_text", fail)
    with pytest.raises(LookupError):
        database.run_sync(put)
    assert database.run_sync(counts) == [0, 0, 0, 0, 0]


def test_what_no_file_has_is_forgotten_with_every_word(database: Database) -> None:
    document_id = database.run_sync(put)
    assert 0 not in database.run_sync(counts)
    database.run_sync(lambda tables: forget_unused(tables, [document_id, None]))
    assert database.run_sync(counts) == [0, 0, 0, 0, 0]


def test_the_index_is_merged_once_after_a_deletion(database: Database) -> None:
    document_id = database.run_sync(put)
    assert not database.run_sync(merge_index)
    database.run_sync(lambda tables: forget_unused(tables, [document_id]))
    assert database.run_sync(merge_index)
    assert not database.run_sync(merge_index)


def test_the_index_holds_no_copy_of_the_text(database: Database) -> None:
    database.run_sync(put)
    rows = database.run_sync(
        lambda tables: tables.execute("select heading, body from passage_fts").fetchall()
    )
    assert rows == [(None, None)] * 2
