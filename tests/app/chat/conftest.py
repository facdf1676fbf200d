"""A fresh room for each test."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.chat import session
from tests.app.chat.room import Room

# Every commit waits for the disk; a folder in memory makes that short, where there is one.
MEMORY = "/dev/shm"


@pytest.fixture
async def room(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(session, "RETRY_INTERVAL_S", 0.01)
    monkeypatch.setattr(session, "SAVE_INTERVAL_S", 0.0)
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        room = Room(Path(folder) / "history.sqlite3")
        yield room
        await room.close()
