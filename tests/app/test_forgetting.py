"""What was deleted leaves the engine as well."""

import asyncio

import pytest

from app.chat.chat_model import ChatModel
from app.forgetting import Forgetting
from engine.errors import HistoryError, ModelNotFound
from tests.fakes_model import FakeEngine, fake_chat_model


class Room:
    """One engine, a list of who lives, and of what was ended."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.living = ["kept"]
        self.left: list[str] = []
        self.has_kv = True
        self.is_source = False
        self.error: Exception | None = None
        self.forgetting = Forgetting(self._living, self._leave, self._model, lambda: self.has_kv)

    async def _living(self) -> list[str]:
        if self.error is not None:
            raise self.error
        return self.living

    async def _leave(self, conversation_id: str) -> None:
        await asyncio.sleep(0)
        self.left.append(conversation_id)

    async def _model(self) -> ChatModel:
        assert self.left or self.is_source, "what goes on is ended first"
        if self.error is not None:
            raise self.error
        return fake_chat_model(self.engine)


@pytest.fixture
async def room() -> Room:
    return Room()


async def test_a_deleted_conversation_is_ended_and_then_forgotten(room: Room) -> None:
    room.forgetting.soon("gone")
    assert (room.left, room.engine.forgotten) == ([], [])
    await room.forgetting.settled()
    assert (room.left, room.engine.forgotten) == (["gone"], ["gone"])


async def test_a_document_that_has_gone_is_forgotten_and_ends_nothing(room: Room) -> None:
    room.is_source = True
    room.forgetting.source_soon("doc:gone")
    await room.forgetting.settled()
    assert (room.left, room.engine.forgotten) == ([], ["doc:gone"])


async def test_no_model_is_loaded_to_forget_what_it_never_read(room: Room) -> None:
    room.has_kv = False
    room.forgetting.soon("gone")
    await room.forgetting.settled()
    assert (room.left, room.engine.forgotten) == (["gone"], [])


async def test_a_model_that_cannot_be_loaded_holds_nobody_up(room: Room) -> None:
    room.error = ModelNotFound("There is no file.")
    room.forgetting.soon("gone")
    await room.forgetting.settled()
    assert (room.left, room.engine.forgotten) == (["gone"], [])


async def test_a_new_model_keeps_only_the_living(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    await room.forgetting.all_but_the_living(fake_chat_model(room.engine))
    assert room.engine.retained == {"kept"}
    room.error = HistoryError("There is no room left.")
    await room.forgetting.all_but_the_living(fake_chat_model(room.engine))
    assert "may be left: There is no room left." in caplog.text
