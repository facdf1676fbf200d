"""The services of a home: made when they are asked for, and closed with nothing lost."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from app.chat.chat_model import ChatModel
from app.chat.message import MessageState
from app.history.search import search
from app.paths import Paths
from app.run import keep_log
from app.services import Services
from app.settings import Settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import (
    EngineError,
    HistoryError,
    HomeError,
    InvalidParams,
    ModelError,
    ModelNotFound,
    NotFound,
    OutOfMemory,
    UsageError,
)
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_model import FakeEngine, FakeModelServices, fake_chat_model
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
    assert (services.model_error, services.model_name) == ("", "model")
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
    with pytest.raises(HistoryError, match="document library at .* Delete it"):
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


async def test_the_model_is_loaded_again_with_the_settings_as_they_are(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(2000, script="Yes.", trained_context=8000))
    before = await services.chat_model()
    services.save_settings(replace(services.settings, context_tokens=4000, threads=2))
    assert services.memory is not None and services.memory.max_request_tokens == 2000
    await services.reload_model()
    after = await services.chat_model()
    assert after is not before
    assert services.engine.is_closed
    assert services.memory is not None
    assert (services.memory.max_request_tokens, services.memory.config.threads) == (4000, 2)
    await services.close()


async def test_a_model_that_answers_is_not_loaded_again_nor_are_its_words_deleted(
    paths: Paths,
) -> None:
    services = FakeModelServices(paths, FakeEngine())
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    with pytest.raises(UsageError, match="is answering"):
        await services.reload_model()
    with pytest.raises(UsageError, match="is answering"):
        await services.forget_kv()
    services.engine.streams[0].end("Yes.")
    await job.finished()
    assert services.engine.held
    await services.forget_kv()
    assert services.engine.held == []
    await services.close()


async def test_a_model_that_could_not_be_loaded_can_be_loaded_after_a_better_choice(
    paths: Paths,
) -> None:
    save_settings(paths.settings, Settings(context_tokens=3))
    services = FakeModelServices(paths, FakeEngine())
    with pytest.raises(InvalidParams, match="context_tokens"):
        await services.chat_model()
    assert services.memory is None
    services.save_settings(replace(services.settings, context_tokens=None))
    await services.reload_model()
    assert services.model_error == ""
    await services.close()


async def test_budgets_hold_at_once_and_are_kept(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    await services.limit_kv(5, 6)
    await services.chat_model()
    await services.limit_kv(7, 8)
    assert services.engine.ram_budget == 7
    kept = Services(paths).settings
    assert (kept.kv_ram_bytes, kept.kv_disk_bytes) == (7, 8)
    await services.close()


class TightServices(FakeModelServices):
    """A machine in which only some configurations find room; `tried` are all of them."""

    def __init__(self, paths: Paths, fits: Callable[[EngineConfig], bool], **named: Any) -> None:
        super().__init__(paths, FakeEngine(), **named)
        self.fits = fits
        self.tried: list[EngineConfig] = []

    async def _open_model(self, config: EngineConfig) -> ChatModel:
        self.tried.append(config)
        if not self.fits(config):
            raise OutOfMemory("It needs 9 GB and 5 GB are free.")
        return fake_chat_model(self.engine)


async def test_too_little_memory_steps_down_and_says_so(paths: Paths) -> None:
    services = TightServices(paths, lambda config: (config.context_tokens or 8192) <= 2048)
    await services.chat_model()
    assert [config.context_tokens for config in services.tried] == [None, 4096, 2048]
    words = "It needs 9 GB and 5 GB are free. It was loaded with a context of 2,048 tokens instead."
    assert services.model_notice == words
    assert services.settings.context_tokens is None
    assert services.memory is not None and services.memory.config.context_tokens == 2048
    await services.close()


async def test_the_starter_takes_the_place_of_what_does_not_fit_at_all(
    paths: Paths, starter: Path
) -> None:
    save_settings(paths.settings, Settings(model=str(paths.models / "large.gguf")))
    services = TightServices(paths, lambda config: config.model_path == starter)
    await services.chat_model()
    assert services.tried[-1].model_path == starter
    assert services.model_notice.endswith(
        "It was not loaded, and the starter model took its place."
    )
    await services.close()


async def test_a_model_that_was_named_is_loaded_or_none(paths: Paths) -> None:
    large = str(paths.models / "large.gguf")
    services = TightServices(paths, lambda config: False, model=large)
    with pytest.raises(OutOfMemory, match="9 GB and 5 GB"):
        await services.chat_model()
    assert {config.model_path.name for config in services.tried} == {"large.gguf"}
    await services.close()


async def test_another_model_is_used_from_now_on_and_at_the_next_start(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = TightServices(paths, lambda config: True)
    before = await services.chat_model()
    assert await services.use_model(path) == ""
    assert await services.chat_model() is not before
    assert services.engine.is_closed
    assert services.tried[-1].model_path == path
    assert Services(paths).model_path == path
    await services.close()


async def test_a_model_that_cannot_be_loaded_leaves_the_old_one(
    paths: Paths, starter: Path
) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = TightServices(paths, lambda config: config.model_path == starter)
    await services.chat_model()
    with pytest.raises(ModelError, match="5 GB are free. fake-model answers on."):
        await services.use_model(path)
    assert services.loaded_model is not None
    assert services.settings.model == "" and Services(paths).settings.model == ""
    assert services.tried[-1].model_path == starter
    await services.close()


async def test_adapters_are_used_at_once_and_at_the_next_start(paths: Paths, starter: Path) -> None:
    named = [("of the command", 1.0)]
    services = TightServices(paths, lambda config: True, adapters=named)
    await services.chat_model()
    assert [each.path.name for each in services.tried[-1].adapters] == ["of the command"]
    pirate = Adapter(paths.models / "pirate.gguf", 0.5)
    assert await services.use_adapters([pirate]) == ""
    assert services.tried[-1].adapters == services.adapters == (pirate,)
    assert services.settings.model == ""
    assert Services(paths).adapters == (pirate,)
    await services.use_adapters([])
    assert services.tried[-1].adapters == Services(paths).adapters == ()
    assert services.settings.by_model == {}
    await services.close()


async def test_adapters_that_cannot_be_used_leave_the_model_as_it_was(paths: Paths) -> None:
    services = TightServices(paths, lambda config: not config.adapters)
    await services.chat_model()
    pirate = Adapter(paths.models / "pirate.gguf")
    with pytest.raises(ModelError, match="5 GB are free. fake-model answers on."):
        await services.use_adapters([pirate])
    assert services.loaded_model is not None
    assert services.adapters == Services(paths).adapters == ()
    with pytest.raises(InvalidParams, match="At most 2"):
        await services.use_adapters([Adapter(Path(f"/{name}")) for name in "abc"])
    await services.close()


async def test_the_adapter_of_a_command_goes_with_its_model(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = TightServices(paths, lambda config: True, adapters=[("pirate", 1.0)])
    await services.chat_model()
    await services.use_model(path)
    assert services.tried[-1].adapters == ()
    await services.close()


async def test_a_removed_adapter_is_used_for_no_model_any_more(paths: Paths) -> None:
    pirate = write_tiny_adapter(paths.cache / "pirate.gguf")
    services = TightServices(paths, lambda config: True)
    model = services.library.add(pirate)
    await services.use_adapters([Adapter(pirate)])
    with pytest.raises(UsageError, match="pirate changes the model that answers: take it off"):
        await services.remove_model(model)
    await services.use_model(write_tiny_model(paths.models / "mine.gguf"))
    await services.remove_model(model)
    assert services.settings.by_model == {} and pirate.exists()
    await services.close()


async def test_no_other_model_is_used_while_one_answers(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = FakeModelServices(paths, FakeEngine())
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    with pytest.raises(UsageError, match="is answering"):
        await services.use_model(path)
    assert services.settings.model == ""
    services.engine.streams[0].end("Yes.")
    await job.finished()
    await services.close()


async def test_a_model_that_nobody_asks_is_freed_and_loaded_again_at_the_next_message(
    paths: Paths,
) -> None:
    save_settings(paths.settings, Settings(unload_after_minutes=10))
    services = FakeModelServices(paths, FakeEngine(script="Yes."))
    before = await services.chat_model()
    now = monotonic()
    assert not await services.free_when_idle(now + 500)
    assert services.loaded_model is before
    assert await services.free_when_idle(now + 700)
    assert services.loaded_model is None and services.engine.is_closed
    assert services.model_error == ""
    assert not await services.free_when_idle(now + 800)
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await job.finished()
    assert services.loaded_model is not None and services.loaded_model is not before
    await services.close()


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
    await services.reload_model()
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
    assert await services.free_when_idle(monotonic() + 10**6)
    await services.conversations.delete(chat)
    await until(lambda: services.engine.forgotten == [chat])
    await until(lambda: not any(services.activity().values()))
    assert await services.free_when_idle(monotonic() + 10**7)
    await services.forget_kv()
    assert services.loaded_model is not None and services.engine.held == []
    await services.close()


async def test_a_model_that_answers_or_is_to_be_kept_is_not_freed(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    await services.chat_model()
    assert not await services.free_when_idle(monotonic() + 10**6)
    services.save_settings(replace(services.settings, unload_after_minutes=1))
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    later = monotonic() + 10**6
    assert not await services.free_when_idle(later)
    services.engine.streams[0].end("Yes.")
    await job.finished()
    await services.jobs.at_rest(conversation.conversation_id)
    # It was busy until just now.
    assert not await services.free_when_idle(later + 30)
    assert await services.free_when_idle(later + 61)
    await services.close()
