"""A library of its own for each test, in memory where that is possible, and a folder beside it."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.documents.library import Library
from tests.fakes_documents import FakeReader

MEMORY = "/dev/shm"


@pytest.fixture
def room() -> Iterator[Path]:
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory, prefix="inglenook-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def folder(room: Path) -> Path:
    made = room / "papers"
    made.mkdir()
    return made


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
async def library(room: Path, reader: FakeReader) -> AsyncIterator[Library]:
    library = Library(room / "documents.sqlite3", reader)
    await library.prepare()
    yield library
    await library.close()
