"""What is not as usual stands above the chat, and quitting asks before it cuts an answer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from app.launch.start_facts import StartFacts
from app.ui.start_note import start_words
from app.web import server
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.serving import served
from tests.visitor import Visitor

CRASH = "Inglenook was stopped by a fault in memory (SIGSEGV) while Qwen was writing, at 12:00."


def test_a_usual_start_says_nothing() -> None:
    assert start_words(StartFacts(is_launched=True)) == []


def test_a_crash_and_safe_mode_are_said_with_the_way_back() -> None:
    words = start_words(StartFacts(is_launched=True, is_safe=True, crash=CRASH))
    assert words[0] == CRASH and words[-1].startswith("Safe mode:")
    (_, way) = start_words(StartFacts(is_safe=True))
    assert "without --safe" in way


def test_what_the_launcher_has_to_say_is_said() -> None:
    assert start_words(StartFacts(is_launched=True, note="The processor computes.")) == [
        "The processor computes."
    ]


@asynccontextmanager
async def started(browser: Browser, folder: Path, facts: StartFacts) -> AsyncIterator[Visitor]:
    """A tab on an app that was started so."""
    services = FakeServices(folder)
    services.start_facts = facts
    async with served(lambda port: server.build(services, port, folder / "cache")) as url:
        context = await browser.new_context()
        tab = await Visitor.arrive(context, url)
        yield tab
        await context.close()
        assert tab.faults == []
    services.database.close()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_safe_mode_stays_in_sight_and_can_be_left(browser: Browser, tmp_path: Path) -> None:
    facts = StartFacts(is_launched=True, is_safe=True, crash=CRASH)
    async with started(browser, tmp_path, facts) as tab:
        note = tab.page.locator("#start_note")
        await expect(note).to_contain_text("a fault in memory (SIGSEGV) while Qwen was writing")
        await expect(note).to_contain_text("Safe mode: a context of at most 2,048 tokens")
        await expect(note.get_by_role("button", name="Dismiss")).to_have_count(0)
        asked: list[str] = []

        async def answer(route: Route) -> None:
            asked.append(route.request.url.rpartition("/")[2])
            await route.fulfill(body="{}")

        await tab.page.route("**/_app/restart", answer)
        await tab.page.get_by_role("button", name="Start as usual").click()
        await expect(note).to_contain_text("Starting again…")
        assert asked == ["restart"]


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_note_goes_when_it_was_read(browser: Browser, tmp_path: Path) -> None:
    facts = StartFacts(is_launched=True, crash=CRASH)
    async with started(browser, tmp_path, facts) as tab:
        note = tab.page.locator("#start_note")
        await note.get_by_role("button", name="Dismiss").click()
        await expect(note).to_be_hidden()
        await tab.reload()
        await expect(note).to_be_hidden()


async def quitting(tab: Visitor, answers: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """What the page asks for, with these answers to it."""
    asked: list[str] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        status, body = answers.pop(0)
        await route.fulfill(status=status, body=json.dumps(body))

    await tab.page.route("**/_app/quit*", answer)
    return asked


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_quit_asks_before_an_answer_is_cut(arrive: Arrive) -> None:
    tab = await arrive()
    busy = (409, {"writing": "1 answer is being written. What is written so far will be kept."})
    asked = await quitting(tab, [busy, busy, (200, {})])
    quit_button = tab.page.get_by_role("button", name="Quit Inglenook")
    await quit_button.click()
    question = tab.page.get_by_role("dialog")
    await expect(question).to_contain_text("Quit Inglenook? 1 answer is being written.")
    await tab.page.get_by_role("button", name="Go on writing").click()
    await expect(question).to_have_count(0)
    assert asked == ["quit"]
    await quit_button.click()
    await tab.page.get_by_role("button", name="Quit anyway").click()
    await expect(question).to_have_count(0)
    assert asked == ["quit", "quit", "quit?anyway=1"]
    # The refusal is no fault of the page.
    tab.faults.clear()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_says_what_the_launcher_says_while_the_app_is_away(arrive: Arrive) -> None:
    tab = await arrive()
    state: dict[str, Any] = {"starting": {"steps": [], "elapsed_s": 1, "crash": CRASH}}
    await tab.page.route("**/_app/state", lambda route: route.fulfill(body=json.dumps(state)))
    lost = tab.page.locator("#lost")
    await expect(lost).to_contain_text("(SIGSEGV) while Qwen was writing, at 12:00. Inglenook is")
    state.clear()
    state["closed"] = True
    await expect(lost).to_contain_text("Inglenook was closed.")
