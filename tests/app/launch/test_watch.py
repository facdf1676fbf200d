"""The launcher knows what the app is at, and hears when the engine has died."""

import asyncio
from typing import cast

import pytest

from app.launch import watch as module
from app.launch.link import Doing, Link
from app.launch.watch import Watch
from app.paths import Paths
from app.services import Services
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.waiting import until


class FakeLink:
    def __init__(self) -> None:
        self.told: list[Doing] = []
        self.faults: list[str] = []

    def tell(self, doing: Doing) -> None:
        self.told.append(doing)

    def fault(self, what: str) -> None:
        self.faults.append(what)


class Death:
    """A model whose engine is dead."""

    def __init__(self, death: BaseException | None, is_closing: bool = False) -> None:
        self.loaded = self
        self.engine = self
        self.death = death
        self.is_closing = asyncio.Event()
        if is_closing:
            self.is_closing.set()


class DeadServices:
    def __init__(self, model: Death) -> None:
        self.loaded_model = model


def watch_of(services: object) -> tuple[Watch, FakeLink]:
    link = FakeLink()
    return Watch(cast(Services, services), cast(Link, link)), link


async def test_it_is_told_what_is_loaded_and_what_is_answered(paths: Paths) -> None:
    services = FakeModelServices(paths, FakeEngine(script="word " * 400))
    watch, link = watch_of(services)
    watch.look()
    assert link.told[-1].is_loading and not link.told[-1].page
    await services.chat_model()
    watch.is_page_ready = True
    watch.look()
    assert link.told[-1] == Doing(page=True, model=services.model.name)
    conversation = await services.conversations.create()
    await services.jobs.send(conversation.conversation_id, "My secret")

    def is_writing() -> bool:
        watch.look()
        return link.told[-1].answering == "writing"

    await until(is_writing)
    assert not any("secret" in repr(doing) for doing in link.told)
    services.jobs.stop(conversation.conversation_id)
    await services.close()


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (Death(None), ""),
        (Death(MemoryError("a secret")), "MemoryError"),
        (Death(RuntimeError("CUDA error: an illegal access")), "RuntimeError: CUDA error"),
        (Death(ValueError("my secret")), "ValueError"),
        (Death(ValueError("x"), is_closing=True), ""),
    ],
)
async def test_a_death_is_named_by_its_kind(model: Death, fault: str) -> None:
    watch, _ = watch_of(DeadServices(model))
    assert watch.fault == fault


async def test_an_app_whose_engine_died_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr(module, "end_this_process", lambda: ended.append("ended"))
    watch, link = watch_of(DeadServices(Death(MemoryError())))
    monkeypatch.setattr(watch, "look", lambda: None)
    await watch.run()
    assert (link.faults, ended) == (["MemoryError"], ["ended"])
