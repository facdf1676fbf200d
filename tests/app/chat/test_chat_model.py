"""What a chat needs around a loaded model."""

import asyncio
import threading
from dataclasses import replace

import pytest

from app.chat import chat_model
from app.chat.chat_model import load_chat_model
from app.chat.message import Role
from app.chat.turns import Turn
from engine.config import EngineConfig
from engine.errors import TemplateError
from tests.fakes_model import FakeEngine, fake_chat_model
from tests.waiting import until

HELLO = Turn(Role.USER, "Hello")


class SlowLedger:
    """Waits until it may go on, and counts who is inside."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.num_begun = 0
        self.num_inside = 0
        self.most_inside = 0

    def encode(self, *_: object) -> list[int]:
        self.num_begun += 1
        self.num_inside += 1
        self.most_inside = max(self.most_inside, self.num_inside)
        self.may_go_on.wait(20)
        self.num_inside -= 1
        return [1]


async def test_one_prompt_is_made_at_a_time_even_if_its_asker_has_gone() -> None:
    ledger = SlowLedger()
    model = replace(fake_chat_model(FakeEngine()), ledger=ledger)  # type: ignore[arg-type]
    asking = [asyncio.create_task(model.prompt([HELLO], "", 0.0)) for _ in range(3)]
    await until(lambda: ledger.num_begun)
    asking[0].cancel()
    await asyncio.wait([asking[0]])
    await asyncio.sleep(0.02)
    assert ledger.num_inside == 1
    ledger.may_go_on.set()
    assert [await each for each in asking[1:]] == [[1], [1]]
    assert ledger.most_inside == 1
    model.close()


def test_a_template_that_cannot_be_read_frees_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    loaded = fake_chat_model(engine).loaded

    def refuse(*_: object) -> None:
        raise TemplateError("This template cannot be understood.")

    monkeypatch.setattr(chat_model, "load", lambda _: loaded)
    monkeypatch.setattr(chat_model.ChatTemplate, "for_model", refuse)
    with pytest.raises(TemplateError):
        load_chat_model(EngineConfig(model_path="x"))  # type: ignore[arg-type]
    assert engine.is_closed
