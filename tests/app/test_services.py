"""The services of a home: made when they are asked for, and closed with nothing lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.message import MessageState
from app.history.search import search
from app.paths import Paths
from app.services import Services
from app.settings import Settings, save_settings
from engine.errors import HistoryError, HomeError, InvalidParams, ModelNotFound
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.waiting import until


async def test_nothing_is_opened_before_it_is_asked_for(paths: Paths) -> None:
    services = Services(paths)
    await services.close()
    assert list(paths.data.iterdir()) == []


async def test_a_model_that_vanished_leaves_the_history_readable(paths: Paths) -> None:
    save_settings(paths.settings, Settings(model="/nowhere/model.gguf"))
    services = Services(paths)
    services.start()
    await until(lambda: services.model_error)
    assert "There is no model file at /nowhere/model.gguf" in services.model_error
    with pytest.raises(ModelNotFound):
        await services.chat_model()
    assert services.model_name == "model"
    assert services.activity()["running"] == 0
    conversation = await services.conversations.create("Kept")
    with pytest.raises(ModelNotFound):
        await services.jobs.send(conversation.conversation_id, "Hello")
    assert [each.title for each in await services.conversations.list()] == ["Kept"]
    await services.close()


async def test_without_the_starter_the_history_is_still_readable(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.starter_model", lambda: None)
    monkeypatch.setattr("app.models.local.starter_model", lambda: None)
    services = Services(paths)
    services.start()
    await until(lambda: services.model_error)
    assert "The starter model is not installed" in services.model_error
    assert (services.model_name, services.is_starter_model) == ("no model", False)
    assert await services.conversations.list() == []
    await services.close()


async def test_a_context_that_makes_no_sense_is_a_sentence(paths: Paths) -> None:
    save_settings(paths.settings, Settings(context_tokens=3))
    services = Services(paths)
    with pytest.raises(InvalidParams, match="context_tokens must be at least 256"):
        await services.chat_model()
    await services.close()


async def test_damaged_settings_are_told_and_kept(paths: Paths) -> None:
    paths.settings.write_text("{")
    with pytest.raises(HomeError, match="damaged"):
        Services(paths)
    assert paths.settings.read_text() == "{"


async def test_a_history_that_is_no_database_is_told_and_kept(paths: Paths) -> None:
    paths.database.write_bytes(b"no database" * 100)
    services = Services(paths)
    with pytest.raises(HistoryError, match="damaged or is no database"):
        await services.tidy()
    await services.close()
    assert paths.database.read_bytes() == b"no database" * 100


async def test_saved_settings_are_used_at_once(paths: Paths) -> None:
    services = Services(paths)
    services.save_settings(replace(services.settings, default_sampling={"temperature": 0.1}))
    assert services.settings.sampling.temperature == 0.1
    assert Services(paths).settings == services.settings


async def test_closing_keeps_what_is_written_and_ends_the_engine(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    services.engine.streams[0].write("Half")
    await until(lambda: job.answer.message.content)
    assert services.activity() == {"jobs": 1, "running": 1, "waiting": 0}
    await services.close()
    assert services.engine.is_closed
    again = FakeModelServices(paths, FakeEngine())
    (_, answer) = await again.conversations.messages(conversation.conversation_id)
    assert (answer.content, answer.state) == ("Half", MessageState.INTERRUPTED)
    await again.close()


async def test_tidying_marks_what_a_crash_cut_short_and_purges_what_was_deleted(
    paths: Paths, home: Path
) -> None:
    services = FakeModelServices(paths, FakeEngine())
    gone = await services.conversations.create("Gone")
    await services.conversations.delete(gone.conversation_id)
    kept = await services.conversations.create("Kept")
    turn = await services.conversations.begin_turn(kept.conversation_id, "Hello")
    await services.conversations.save_partial(turn.answer.message_id, "Half", "")
    services.database.close()

    services = FakeModelServices(paths, FakeEngine(script="Hi"))
    await services.tidy()
    (_, answer) = await services.conversations.messages(kept.conversation_id)
    assert (answer.content, answer.state) == ("Half", MessageState.INTERRUPTED)
    job = await services.jobs.send(kept.conversation_id, "Go on")
    assert (await job.finished()).message.content == "Hi"
    with pytest.raises(HistoryError):
        await services.conversations.restore(gone.conversation_id)
    await services.close()


async def test_search_finds_what_was_said(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(script="Paris"))
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "What is the capital?")
    await job.finished()
    hits = await search(services.database, "paris")
    assert [hit.snippet for hit in hits] == ["Paris"]
    await services.close()
