"""A fresh history for each test."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.history.database import Database
from tests.app.history.chats import Chats

# Every commit waits for the disk; a folder in memory makes that short, where there is one.
MEMORY = "/dev/shm"


@pytest.fixture
def path() -> Iterator[Path]:
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        yield Path(folder) / "history.sqlite3"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database(path) as database:
        yield database


@pytest.fixture
def chats(database: Database) -> Chats:
    return Chats(database)
