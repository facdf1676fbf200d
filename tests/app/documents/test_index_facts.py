"""Numbers of a whole library."""

from collections.abc import Iterator

import pytest
from sqlite_utils import Database as Tables

from app.documents.holding import LIBRARY
from app.documents.index_facts import count, note, noted
from app.history.database import Database


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(None, LIBRARY) as opened:
        yield opened


def test_what_is_noted_takes_the_place_of_what_was_noted_before(database: Database) -> None:
    def work(tables: Tables) -> None:
        assert noted(tables, "rules") is None
        note(tables, "rules", 0)
        assert noted(tables, "rules") == 0
        note(tables, "rules", 3)
        assert (noted(tables, "rules"), noted(tables, "others")) == (3, None)

    database.run_sync(work)


def test_what_is_counted_is_added_to_what_was_counted_before(database: Database) -> None:
    def work(tables: Tables) -> None:
        count(tables, "gone", 2)
        count(tables, "gone", 3)
        assert noted(tables, "gone") == 5

    database.run_sync(work)
