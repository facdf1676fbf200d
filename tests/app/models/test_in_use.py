"""The model that answers: loaded anew, changed for another one, removed, and freed when idle."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from app.chat.chat_model import ChatModel
from app.paths import Paths
from app.services import Services
from app.settings import Settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import InvalidParams, ModelError, OutOfMemory, UsageError
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_model import FakeEngine, FakeModelServices, fake_chat_model
from tests.waiting import until


async def test_the_model_is_loaded_again_with_the_settings_as_they_are(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(2000, script="Yes.", trained_context=8000))
    before = await services.chat_model()
    services.save_settings(replace(services.settings, context_tokens=4000, threads=2))
    assert services.memory is not None and services.memory.max_request_tokens == 2000
    await services.model.reload()
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
        await services.model.reload()
    with pytest.raises(UsageError, match="is answering"):
        await services.model.forget_kv()
    services.engine.streams[0].end("Yes.")
    await job.finished()
    assert services.engine.held
    await services.model.forget_kv()
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
    await services.model.reload()
    assert services.model_error == ""
    await services.close()


async def test_budgets_hold_at_once_and_are_kept(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    await services.model.limit_kv(5, 6)
    await services.chat_model()
    await services.model.limit_kv(7, 8)
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
    assert await services.model.use(path) == ""
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
        await services.model.use(path)
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
    assert await services.model.use_adapters([pirate]) == ""
    assert services.tried[-1].adapters == services.adapters == (pirate,)
    assert services.settings.model == ""
    assert Services(paths).adapters == (pirate,)
    await services.model.use_adapters([])
    assert services.tried[-1].adapters == Services(paths).adapters == ()
    assert services.settings.by_model == {}
    await services.close()


async def test_adapters_that_cannot_be_used_leave_the_model_as_it_was(paths: Paths) -> None:
    services = TightServices(paths, lambda config: not config.adapters)
    await services.chat_model()
    pirate = Adapter(paths.models / "pirate.gguf")
    with pytest.raises(ModelError, match="5 GB are free. fake-model answers on."):
        await services.model.use_adapters([pirate])
    assert services.loaded_model is not None
    assert services.adapters == Services(paths).adapters == ()
    with pytest.raises(InvalidParams, match="At most 2"):
        await services.model.use_adapters([Adapter(Path(f"/{name}")) for name in "abc"])
    await services.close()


async def test_the_adapter_of_a_command_goes_with_its_model(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = TightServices(paths, lambda config: True, adapters=[("pirate", 1.0)])
    await services.chat_model()
    await services.model.use(path)
    assert services.tried[-1].adapters == ()
    await services.close()


async def test_a_removed_adapter_is_used_for_no_model_any_more(paths: Paths) -> None:
    pirate = write_tiny_adapter(paths.cache / "pirate.gguf")
    services = TightServices(paths, lambda config: True)
    model = services.library.add(pirate)
    await services.model.use_adapters([Adapter(pirate)])
    with pytest.raises(UsageError, match="pirate changes the model that answers: take it off"):
        await services.model.remove(model)
    await services.model.use(write_tiny_model(paths.models / "mine.gguf"))
    await services.model.remove(model)
    assert services.settings.by_model == {} and pirate.exists()
    await services.close()


async def test_no_other_model_is_used_while_one_answers(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "mine.gguf")
    services = FakeModelServices(paths, FakeEngine())
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    with pytest.raises(UsageError, match="is answering"):
        await services.model.use(path)
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
    assert not await services.model.free_when_idle(now + 500)
    assert services.loaded_model is before
    assert await services.model.free_when_idle(now + 700)
    assert services.loaded_model is None and services.engine.is_closed
    assert services.model_error == ""
    assert not await services.model.free_when_idle(now + 800)
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await job.finished()
    assert services.loaded_model is not None and services.loaded_model is not before
    await services.close()


async def test_a_model_that_answers_or_is_to_be_kept_is_not_freed(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine())
    await services.chat_model()
    assert not await services.model.free_when_idle(monotonic() + 10**6)
    services.save_settings(replace(services.settings, unload_after_minutes=1))
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    later = monotonic() + 10**6
    assert not await services.model.free_when_idle(later)
    services.engine.streams[0].end("Yes.")
    await job.finished()
    await services.jobs.at_rest(conversation.conversation_id)
    # It was busy until just now.
    assert not await services.model.free_when_idle(later + 30)
    assert await services.model.free_when_idle(later + 61)
    await services.close()
