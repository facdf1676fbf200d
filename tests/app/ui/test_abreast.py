"""A conversation that goes on in one tab goes on in the others that show it."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from playwright.async_api import expect

from app.ui.abreast import Abreast
from app.ui.chat import Chat
from app.ui.settings import SettingsPanel
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices, Script
from tests.visitor import eventually

numbers = itertools.count(1)
WORDS = [f"word{number} " for number in range(60)]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[FakeServices]:
    services = FakeServices(tmp_path)
    yield services
    services.database.close()


async def test_only_a_tab_that_lacks_the_newest_message_is_stale(alone: FakeServices) -> None:
    with gr.Blocks(analytics_enabled=False):
        abreast = Abreast(alone, Chat(alone, SettingsPanel(alone)))
    made = (await alone.conversations.create()).conversation_id
    assert await abreast.look("4", None, None) == gr.skip()
    assert await abreast.look("4", made, None) == gr.skip()
    await alone.tell(made, ["Hello", "Well met."])
    assert await abreast.look("4", made, None) == "4"
    request: Any = type("Request", (), {"session_hash": "tab"})()
    seen = [updates async for updates in abreast.follow(made, 40, request)]
    mark = seen[0][abreast.mark]
    assert await abreast.look("4", made, mark) == gr.skip()
    await alone.tell(made, ["More", "Here."])
    assert await abreast.look("4", made, mark) == "4"
    await alone.conversations.purge(made)
    assert await abreast.look("4", made, mark) == gr.skip()


async def test_whatever_becomes_the_last_message_is_counted_as_a_turn(alone: FakeServices) -> None:
    conversations = alone.conversations
    made = (await conversations.create()).conversation_id
    counts = [conversations.num_turns]
    await alone.tell(made, ["Hello", "Well met."])
    counts.append(conversations.num_turns)
    asked, answer = await conversations.messages(made)
    again = await conversations.begin_answer(made, asked.message_id)
    counts.append(conversations.num_turns)
    await conversations.save_partial(again.message_id, "Hm", "")
    assert conversations.num_turns == counts[-1]
    await conversations.set_active(made, answer.message_id)
    counts.append(conversations.num_turns)
    assert counts == sorted(set(counts))


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_second_tab_follows_what_is_said_in_the_first(
    services: FakeServices, arrive: Arrive
) -> None:
    title = f"Two tabs, number {next(numbers)}"
    made = (await services.conversations.create(title=title)).conversation_id
    await services.tell(made, ["Hello", "Well met."] * 8)
    first = await arrive()
    await first.open(title)
    second = await arrive(beside=first)
    await second.sees_answer("Well met.")
    await second.composer.fill("half a thought")
    await second.composer.evaluate("box => box.setSelectionRange(4, 4)")
    chat = second.page.locator("#chat .bubble-wrap")
    # What is opened is scrolled to its end, a moment later.
    await asyncio.sleep(1)
    await chat.hover()
    await second.page.mouse.wheel(0, -300)
    await asyncio.sleep(0.5)
    place = await chat.evaluate("part => part.scrollTop")
    assert await chat.evaluate("part => part.scrollHeight - part.clientHeight") > place + 200

    services.jobs.script = Script(pieces=WORDS, pace_s=0.1)
    await first.send("And now?")
    await second.sees_answer("word3")
    # While it is written, not only at its end.
    assert "word59" not in await second.last_answer()
    await expect(second.stop_button).to_be_visible()
    await second.sees_answer("word59")
    assert (await second.texts("user"))[-1] == "And now?"
    assert await second.composer.input_value() == "half a thought"
    assert await second.composer.evaluate("box => box === document.activeElement")
    assert await second.composer.evaluate("box => box.selectionStart") == 4
    assert await chat.evaluate("part => part.scrollTop") == place
    await expect(second.send_button).to_be_visible()
    # And back.
    services.jobs.script = Script(pieces=["Back", " again."])
    await second.composer.press("Enter")
    await first.sees_answer("Back again.")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_tab_with_another_chat_stays_as_it_is(
    services: FakeServices, arrive: Arrive
) -> None:
    titles = [f"Apart, number {next(numbers)}" for _ in range(2)]
    for title in titles:
        made = (await services.conversations.create(title=title)).conversation_id
        await services.tell(made, ["Hello", f"This is {title}."])
    first, second = await arrive(), await arrive()
    await first.open(titles[0])
    await second.open(titles[1])
    await second.sees_answer(titles[1])
    asked: list[str] = []
    second.page.on("request", lambda request: asked.append(request.url))
    await first.send("Go on")
    await first.sees_answer("Hello there.")

    async def has_looked() -> bool:
        return any("run/predict" in url for url in asked)

    await eventually(has_looked, "a look of the second tab")
    await asyncio.sleep(1)
    assert not [url for url in asked if "queue/join" in url]
    assert titles[1] in await second.last_answer()
