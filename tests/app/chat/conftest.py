"""A fresh room for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.chat import session
from tests.app.chat.room import Room


@pytest.fixture
async def room(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(session, "RETRY_INTERVAL_S", 0.01)
    monkeypatch.setattr(session, "SAVE_INTERVAL_S", 0.0)
    room = Room(home / "history.sqlite3")
    yield room
    await room.close()
