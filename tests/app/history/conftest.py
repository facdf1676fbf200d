"""A fresh history for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.history.database import Database
from tests.app.history.chats import Chats


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database(path) as database:
        yield database


@pytest.fixture
def chats(database: Database) -> Chats:
    return Chats(database)
