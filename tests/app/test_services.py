"""The services of a home: made when they are asked for, and closed with nothing lost."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from app.chat.chat_model import ChatModel
from app.chat.message import MessageState
from app.history.search import search
from app.paths import Paths
from app.run import keep_log
from app.services import Services
from app.settings import Settings, save_settings
from engine.config import EngineConfig
from engine.errors import (
    EngineError,
    HistoryError,
    HomeError,
    InvalidParams,
    ModelNotFound,
    NotFound,
)
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
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
    assert services.model.name == "model"
    assert services.activity()["running"] == 0
    conversation = await services.conversations.create("Kept")
    with pytest.raises(ModelNotFound):
        await services.jobs.send(conversation.conversation_id, "Hello")
    assert [each.title for each in await services.conversations.list()] == ["Kept"]
    await services.close()


async def test_a_model_that_is_back_answers_the_next_message(paths: Paths, home: Path) -> None:
    file = home / "model.gguf"
    save_settings(paths.settings, Settings(model=str(file)))
    services = Services(paths)
    services.start()
    await until(lambda: services.model_error)
    write_tiny_model(file)
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    job.stop()
    await job.finished()
    assert (services.model_error, services.model.name) == ("", "model")
    await services.close()


async def test_the_users_files_are_followed_from_the_start_once_there_are_some(
    paths: Paths, home: Path
) -> None:
    (home / "papers").mkdir()
    services = FakeModelServices(paths, FakeEngine())
    services.start()
    assert "documents" not in services.__dict__
    await services.documents.add(home / "papers")
    await services.close()
    (home / "papers" / "new.txt").write_text("The river Inn.")
    services = FakeModelServices(paths, FakeEngine())
    services.start()
    for _ in range(600):
        if (await services.documents.find("Inn")).hits:
            break
        await asyncio.sleep(0.05)
    assert len((await services.documents.find("Inn")).hits) == 1
    await services.close()


async def test_a_damaged_library_of_files_holds_up_nothing_else(paths: Paths) -> None:
    paths.documents.write_bytes(b"no database" * 1000)
    services = FakeModelServices(paths, FakeEngine())
    services.start()
    await services.conversations.create("Kept")
    with pytest.raises(HistoryError, match="document library at .* Move it away"):
        await services.documents.prepare()
    await services.close()


async def test_the_draft_model_is_the_one_named_or_else_the_saved_one(paths: Paths) -> None:
    save_settings(paths.settings, Settings(model="/m.gguf", draft_model="/saved.gguf"))
    for named, expected in (("", "/saved.gguf"), ("/named.gguf", "/named.gguf")):
        services = Services(paths, draft_model=named)
        assert services.engine_config.draft_model_path == Path(expected)
        await services.close()
    save_settings(paths.settings, Settings(model="/m.gguf"))
    services = Services(paths)
    assert services.engine_config.draft_model_path is None
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
    assert (services.model.name, services.is_starter_model) == ("no model", False)
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


async def test_deleting_a_chat_makes_the_engine_forget_it(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(script="Hi"))
    chat = (await services.conversations.create()).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    assert [owner for owner, _ in services.engine.held] == [chat]
    await services.conversations.delete(chat)
    await until(lambda: services.engine.forgotten == [chat])
    assert services.engine.held == []
    await services.conversations.restore(chat)
    await (await services.jobs.send(chat, "Still there?")).finished()
    assert len(await services.conversations.messages(chat)) == 4
    await services.close()


async def test_a_chat_deleted_while_it_answers_is_forgotten_once_it_has_ended(
    paths: Paths,
) -> None:
    services = FakeModelServices(paths, FakeEngine())
    chat = (await services.conversations.create()).conversation_id
    job = await services.jobs.send(chat, "Hello")
    await until(lambda: services.engine.streams)
    await services.conversations.purge(chat)
    await until(lambda: services.engine.forgotten == [chat])
    assert job.is_over
    assert services.engine.streams[0].is_aborted
    await services.close()


async def test_a_chat_deleted_while_the_model_loads_is_forgotten(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = FakeModelServices(paths, FakeEngine())
    loaded = asyncio.Event()
    load = services._open_model

    async def load_late(config: EngineConfig) -> ChatModel:
        await loaded.wait()
        return await load(config)

    monkeypatch.setattr(services._holder, "_open_model", load_late)
    chat = (await services.conversations.create()).conversation_id
    services.start()
    await services.conversations.delete(chat)
    await asyncio.sleep(0.01)
    loaded.set()
    await until(lambda: services.engine.forgotten == [chat])
    await services.close()


async def test_at_the_start_the_engine_keeps_only_the_living(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    kept = (await services.conversations.create()).conversation_id
    deleted = (await services.conversations.create()).conversation_id
    await services.conversations.delete(deleted)
    purged = (await services.conversations.create()).conversation_id
    await services.conversations.purge(purged)
    owner = await services.program_user("ann")
    await services.close()
    # Nobody loaded the model, so nobody could be told.
    assert services.engine.forgotten == []

    services = FakeModelServices(paths, FakeEngine())
    services.start()
    await until(lambda: services.loaded_model)
    assert services.engine.retained == {kept, owner}
    await services.close()


async def test_a_command_without_the_app_touches_no_kv(paths: Paths) -> None:
    """It does not own the home: the app's files may be in use."""
    services = FakeModelServices(paths, FakeEngine())
    await services.chat_model()
    assert services.engine.retained is None
    assert not paths.kv.exists()
    await services.close()


async def test_a_history_that_fails_leaves_the_model_usable(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = FakeModelServices(paths, FakeEngine())

    async def fail() -> list[str]:
        raise HistoryError("There is no room left.")

    monkeypatch.setattr(services.conversations, "ids", fail)
    services.start()
    await services.chat_model()
    assert services.engine.retained is None
    await services.close()


async def test_closing_waits_for_what_is_still_to_be_forgotten(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(script="Hi"))
    chat = (await services.conversations.create()).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    await services.conversations.delete(chat)
    await services.close()
    assert services.engine.forgotten == [chat]


async def test_the_starter_model_gives_no_titles(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(script="Hi"))
    assert services.is_starter_model
    assert services.settings.automatic_titles
    chat = (await services.conversations.create()).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    await services.jobs.at_rest(chat)
    assert services.engine.background == []
    await services.close()


async def test_another_model_gives_titles(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.starter_model", lambda: None)
    services = FakeModelServices(paths, FakeEngine(script="Hi"))
    services.engine.background_script = "A greeting"
    chat = (await services.conversations.create()).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    await services.jobs.at_rest(chat)
    assert (await services.conversations.get(chat)).title == "A greeting"
    await services.close()


async def test_nothing_of_a_temporary_chat_is_in_any_file(
    paths: Paths, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole app but the page, with its log, its titles and its preparations."""
    keep_log(paths)
    monkeypatch.setattr("app.services.starter_model", lambda: None)
    secret = "xylophone"
    services = FakeModelServices(paths, FakeEngine(), "qwen3")
    services.engine.background_script = f"About a {secret}"
    services.start()
    chat = (
        await services.conversations.create(system_prompt=secret, temporary=True)
    ).conversation_id
    for number in range(2):
        job = await services.jobs.send(chat, f"What is a {secret}?")
        await until(lambda number=number: len(services.engine.streams) > number)
        services.engine.streams[number].end(f"<think>{secret}</think>It is a {secret}.")
        await job.finished()
        await services.jobs.at_rest(chat)
    job = await services.jobs.send(chat, f"And this {secret}?")
    await until(lambda: len(services.engine.streams) > 2)
    services.engine.streams[2].write(secret)
    services.engine.streams[2].fail(EngineError(f"No {secret}."))
    await job.finished()
    asked = [*services.engine.streams, *services.engine.background]
    assert {each.options.is_preparation for each in asked} == {True, False}
    assert not any(each.options.belonging.is_durable for each in asked)
    assert (await services.conversations.get(chat)).title == f"About a {secret}"
    files = [file for file in home.rglob("*") if file.is_file()]
    assert paths.database in files
    assert not [file for file in files if secret.encode() in file.read_bytes()]
    await services.close()
    files = [file for file in home.rglob("*") if file.is_file()]
    assert not [file for file in files if secret.encode() in file.read_bytes()]

    again = FakeModelServices(paths, FakeEngine())
    with pytest.raises(NotFound):
        await again.conversations.get(chat)
    await again.close()


async def test_idle_work_ends_before_its_model_goes(
    paths: Paths, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for ids by a model that was closed already."""
    services = FakeModelServices(paths, FakeEngine(script="Yes."))
    before = await services.chat_model()
    asked = asyncio.Event()

    async def prefix(*_: object) -> list[int]:
        asked.set()
        await asyncio.sleep(60)
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(ChatModel, "prefix", prefix)
    conversation = await services.conversations.create()
    await (await services.jobs.send(conversation.conversation_id, "Hello")).finished()
    await asyncio.wait_for(asked.wait(), 10)
    await services.model.reload()
    assert services.loaded_model is not before
    await asyncio.wait_for(services.jobs.at_rest(conversation.conversation_id), 10)
    await services.close()
    assert not caplog.records


async def test_a_chat_deleted_while_the_model_is_freed_is_forgotten_at_once(paths: Paths) -> None:
    save_settings(paths.settings, Settings(unload_after_minutes=10))
    services = FakeModelServices(paths, FakeEngine(script="Yes."))
    services.start()
    chat = (await services.conversations.create()).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    await services.jobs.at_rest(chat)
    assert await services.model.free_when_idle(monotonic() + 10**6)
    await services.conversations.delete(chat)
    await until(lambda: services.engine.forgotten == [chat])
    await until(lambda: not any(services.activity().values()))
    assert await services.model.free_when_idle(monotonic() + 10**7)
    await services.model.forget_kv()
    assert services.loaded_model is not None and services.engine.held == []
    await services.close()
