"""The one model that is loaded: when it comes, with what, and when it goes."""

import asyncio
import gc
import weakref
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from app.chat.chat_model import ChatModel
from app.models.holder import ModelHolder
from engine.config import EngineConfig
from engine.errors import InvalidParams, ModelNotFound, OutOfMemory
from tests.fakes_model import FakeEngine, fake_chat_model


class Shelf:
    """What a holder is given: models that open at once, or fail, and a list of what happened."""

    def __init__(self) -> None:
        self.wanted = EngineConfig(model_path=Path("wanted.gguf"))
        self.starter: Path | None = None
        self.failures: list[Exception] = []
        self.happened: list[str] = []
        self.tried: list[EngineConfig] = []
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.engines: list[FakeEngine] = []
        self.holder = ModelHolder(
            lambda: self.wanted, lambda: self.starter, self._open, self._on_loaded, self._on_leaving
        )

    async def _open(self, config: EngineConfig) -> ChatModel:
        self.happened.append("open")
        self.tried.append(config)
        await self.may_open.wait()
        if self.failures:
            raise self.failures.pop(0)
        assert all(engine.is_closed for engine in self.engines), "two models at once"
        self.engines.append(FakeEngine())
        return fake_chat_model(self.engines[-1])

    async def _on_loaded(self, _: ChatModel) -> None:
        self.happened.append("loaded")

    async def _on_leaving(self) -> None:
        assert not self.engines[-1].is_closed
        self.happened.append("leaving")


@pytest.fixture
async def shelf() -> Shelf:
    return Shelf()


async def test_nothing_is_loaded_before_it_is_asked_for(shelf: Shelf) -> None:
    assert not shelf.holder.is_begun
    assert (shelf.holder.model, shelf.holder.memory, shelf.holder.error) == (None, None, "")
    await shelf.holder.close()
    assert shelf.happened == []


async def test_who_asks_at_the_same_time_gets_the_same_model(shelf: Shelf) -> None:
    first, second = await asyncio.gather(shelf.holder.get(), shelf.holder.get())
    assert first is second is shelf.holder.model
    assert shelf.happened == ["open", "loaded"]
    assert shelf.holder.memory is not None and shelf.holder.memory.config == shelf.wanted


async def test_who_gives_up_waiting_leaves_the_model_loading(shelf: Shelf) -> None:
    shelf.may_open.clear()
    waiting = asyncio.create_task(shelf.holder.get())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    shelf.may_open.set()
    await shelf.holder.get()
    assert shelf.happened == ["open", "loaded"]


async def test_who_asks_after_a_failure_lets_it_be_tried_again(shelf: Shelf) -> None:
    shelf.failures = [ModelNotFound("There is no file."), ModelNotFound("There is still none.")]
    for sentence in ("There is no file.", "There is still none."):
        with pytest.raises(ModelNotFound, match=sentence):
            await shelf.holder.get()
        assert shelf.holder.error == sentence
        assert (shelf.holder.is_begun, shelf.holder.model) == (True, None)
    assert await shelf.holder.get() is shelf.holder.model
    assert (shelf.holder.error, shelf.happened) == ("", ["open", "open", "open", "loaded"])


async def test_who_asks_at_the_same_time_gets_the_same_failure(shelf: Shelf) -> None:
    shelf.failures = [ModelNotFound("There is no file.")]
    both = await asyncio.gather(shelf.holder.get(), shelf.holder.get(), return_exceptions=True)
    assert [str(each) for each in both] == ["There is no file."] * 2
    assert shelf.happened == ["open"]


async def test_a_file_that_was_away_when_a_freed_model_was_asked_for_is_found_again(
    shelf: Shelf,
) -> None:
    await shelf.holder.get()
    assert await shelf.holder.free_after(60, monotonic() + 100)
    shelf.failures = [ModelNotFound("There is no file.")]
    with pytest.raises(ModelNotFound):
        await shelf.holder.get()
    assert await shelf.holder.get() is shelf.holder.model


async def test_a_failure_in_the_background_is_in_the_log(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.failures = [ModelNotFound("There is no file.")]
    shelf.holder.begin()
    await asyncio.sleep(0)
    await shelf.holder.settled()
    await asyncio.sleep(0)
    assert caplog.messages == ["There is no file."]


async def test_the_old_model_is_closed_before_the_next_is_loaded(shelf: Shelf) -> None:
    await shelf.holder.get()
    shelf.wanted = replace(shelf.wanted, model_path=Path("next.gguf"))
    await shelf.holder.replace()
    assert shelf.happened == ["open", "loaded", "leaving", "open", "loaded"]
    assert [engine.is_closed for engine in shelf.engines] == [True, False]
    assert shelf.tried[-1].model_path.name == "next.gguf"


async def test_nothing_of_the_old_model_is_left_when_the_next_is_loaded(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = weakref.ref((await shelf.holder.get()).ledger)
    left: list[object] = []
    open_model = shelf._open

    async def looked_around(config: EngineConfig) -> ChatModel:
        gc.collect()
        left.append(old())
        return await open_model(config)

    monkeypatch.setattr(shelf.holder, "_open_model", looked_around)
    await shelf.holder.replace()
    assert left == [None]


async def test_replacing_waits_for_what_is_loading(shelf: Shelf) -> None:
    shelf.may_open.clear()
    shelf.holder.begin()
    await asyncio.sleep(0)
    replacing = asyncio.create_task(shelf.holder.replace())
    await asyncio.sleep(0)
    shelf.may_open.set()
    await replacing
    assert [engine.is_closed for engine in shelf.engines] == [True, False]


async def test_an_unused_model_is_freed_and_comes_back_when_asked_for(shelf: Shelf) -> None:
    first = await shelf.holder.get()
    now = monotonic()
    assert not await shelf.holder.free_after(60, now + 30)
    shelf.holder.note_use(now + 50)
    assert not await shelf.holder.free_after(60, now + 100)
    assert await shelf.holder.free_after(60, now + 111)
    assert (shelf.holder.model, shelf.holder.is_begun) == (None, False)
    assert shelf.engines[0].is_closed
    assert await shelf.holder.get() is not first


async def test_who_asks_while_it_is_freed_waits_for_the_next(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.holder.get()
    left = asyncio.Event()
    monkeypatch.setattr(shelf.holder, "_on_leaving", left.wait)
    freeing = asyncio.create_task(shelf.holder.free_after(60, monotonic() + 100))
    await asyncio.sleep(0)
    asking = asyncio.create_task(shelf.holder.get())
    await asyncio.sleep(0.01)
    assert shelf.happened == ["open", "loaded"]
    left.set()
    assert await freeing
    await asking
    assert [engine.is_closed for engine in shelf.engines] == [True, False]


async def test_closing_waits_for_what_is_loading_and_closes_it(shelf: Shelf) -> None:
    shelf.may_open.clear()
    shelf.holder.begin()
    await asyncio.sleep(0)
    closing = asyncio.create_task(shelf.holder.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    shelf.may_open.set()
    await closing
    assert shelf.engines[0].is_closed


async def test_the_smallest_change_that_fits_is_taken_and_told(shelf: Shelf) -> None:
    full = OutOfMemory("It needs 9 GB and 5 GB are free.")
    shelf.failures = [full, InvalidParams("No."), full]
    await shelf.holder.get()
    assert len(shelf.tried) == 4
    assert shelf.holder.notice.startswith("It needs 9 GB and 5 GB are free. It was loaded with")
    assert shelf.holder.memory is not None and shelf.holder.memory.config == shelf.tried[-1]
    await shelf.holder.replace()
    assert shelf.holder.notice == ""


async def test_the_first_reason_is_told_when_nothing_fits(shelf: Shelf) -> None:
    shelf.starter = Path("starter.gguf")
    shelf.failures = [OutOfMemory(f"Reason {number}.") for number in range(100)]
    with pytest.raises(OutOfMemory, match=r"Reason 0\."):
        await shelf.holder.get()
    assert shelf.tried[-1].model_path == shelf.starter


async def test_a_fault_that_less_memory_does_not_mend_is_told_at_once(shelf: Shelf) -> None:
    shelf.failures = [InvalidParams("No.")]
    with pytest.raises(InvalidParams):
        await shelf.holder.get()
    assert len(shelf.tried) == 1
