"""The context on the page: the meter, the question, the mark, and what the model saw."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, expect

from app.chat.message import Overflow
from app.chat.sight import Fill
from app.paths import Paths
from app.ui.context import meter
from app.web import server
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.serving import served
from tests.visitor import Visitor, eventually

CONTEXT = 2000
TURN = "Tell me about the chimney. " * 7
ANSWER = "It draws the smoke."

numbers = itertools.count(1)
ArriveFull = Callable[..., Awaitable[tuple[Visitor, str]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hearth(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[FakeModelServices, str]]:
    """The whole app but the model, whose context is small; and its address."""
    home: Path = tmp_path_factory.mktemp("home")
    paths = Paths(home / "data", home / "cache", home / "models", home / "logs")
    engine = FakeEngine(CONTEXT, script=ANSWER, trained_context=16_000)
    services = FakeModelServices(paths, engine)
    await services.chat_model()
    async with served(lambda port: server.build(services, port, home / "cache")) as url:
        yield services, f"{url}/"
    await services.close()


@pytest_asyncio.fixture(loop_scope="session")
async def services(hearth: tuple[FakeModelServices, str]) -> FakeModelServices:
    services = hearth[0]
    services.engine.script = ANSWER
    services.save_settings(
        replace(
            services.settings,
            context_tokens=CONTEXT,
            default_sampling={"max_tokens": 200},
            automatic_titles=False,
        )
    )
    await services.model.reload()
    return services


@pytest_asyncio.fixture(loop_scope="session")
async def arrive_full(
    services: FakeModelServices, hearth: tuple[FakeModelServices, str], browser: Browser
) -> AsyncIterator[ArriveFull]:
    """Opens a tab on a conversation of eight turns, in which the next one does not fit."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []

    async def arriving(**options: Any) -> tuple[Visitor, str]:
        conversation = await services.conversations.create(title=f"Full number {next(numbers)}")
        for number in range(8):
            job = await services.jobs.send(conversation.conversation_id, f"{number} {TURN}")
            await job.finished()
        contexts.append(await browser.new_context(**options))
        tab = await Visitor.arrive(contexts[-1], hearth[1])
        visitors.append(tab)
        if options.get("viewport", {}).get("width", 1000) < 700:
            await tab.page.get_by_role("button", name="Conversations", exact=True).click()
        await tab.open(conversation.title)
        await tab.sees_answer(ANSWER)
        return tab, conversation.conversation_id

    yield arriving
    for context in contexts:
        await context.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []


def ask_box(tab: Visitor) -> Locator:
    return tab.page.get_by_role("alertdialog", name="The context is full")


async def ask(tab: Visitor) -> str:
    """Send what does not fit; the text."""
    text = f"8 {TURN}"
    await tab.send(text)
    await expect(ask_box(tab)).to_be_visible()
    return text


async def is_answered(services: FakeModelServices, tab: Visitor, conversation_id: str) -> None:
    async def has_ten() -> bool:
        return await services.conversations.num_messages(conversation_id) == 18

    await eventually(has_ten, "a ninth turn")
    await expect(tab.send_button).to_be_visible()
    await expect(ask_box(tab)).to_be_hidden()


async def seen_first(services: FakeModelServices, conversation_id: str) -> str:
    """What the first message says that the newest answer was made from."""
    messages = await services.conversations.messages(conversation_id)
    first_id = messages[-1].seen.first_id
    return next(one.content for one in messages if one.message_id == first_id)


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestAsking:
    async def test_a_message_that_does_not_fit_stays_in_the_box_and_is_not_sent(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        text = await ask(tab)
        await tab.sees("Nothing has been sent yet.")
        await expect(tab.composer).to_have_value(text)
        assert await services.conversations.num_messages(conversation_id) == 16
        await tab.page.keyboard.press("Escape")
        await expect(ask_box(tab)).to_be_hidden()
        await ask(tab)
        await tab.page.get_by_role("button", name="Cancel").click()
        await expect(ask_box(tab)).to_be_hidden()
        await expect(tab.composer).to_have_value(text)
        stored = await services.conversations.get(conversation_id)
        assert stored.overflow is Overflow.ASK

    async def test_leaving_out_sends_the_message_marks_the_place_and_is_remembered(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        await ask(tab)
        leave_out = tab.page.get_by_role("button", name="Leave out the")
        await expect(leave_out).to_contain_text("oldest turns (")
        await leave_out.click()
        await is_answered(services, tab, conversation_id)
        await expect(tab.composer).to_have_value("")
        mark = tab.page.locator("#chat .cut")
        await expect(mark).to_have_text("The model no longer sees what is above")
        below = tab.page.locator("#chat .message-row:has(.cut) ~ .message-row").first
        first = await seen_first(services, conversation_id)
        assert first.split()[0] in (await below.text_content() or "")
        assert (await services.conversations.get(conversation_id)).overflow is Overflow.DROP
        await tab.page.get_by_role("button", name="Settings").click()
        await expect(tab.page.get_by_label("Leave out the oldest turns")).to_be_checked()

    async def test_a_summary_is_made_with_progress_and_shown(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        services.engine.script = None
        num_before = len(services.engine.streams)
        await ask(tab)
        await tab.page.get_by_role("button", name="Sum up the").click()

        async def request(number: int) -> Any:
            async def is_there() -> bool:
                return len(services.engine.streams) > num_before + number

            await eventually(is_there, f"request {number}")
            return services.engine.streams[num_before + number]

        summary = await request(0)
        summary.write("They talked of <b>chimneys</b> ")
        await tab.sees_answer("oldest turns… 4 words")
        summary.end("at length.")
        (await request(1)).end("Now I know.")
        await tab.sees_answer("Now I know.")
        await is_answered(services, tab, conversation_id)
        await expect(tab.page.locator("#chat .cut")).to_contain_text("only this summary of it")
        shown = tab.page.locator("#chat .summary")
        await expect(shown).to_have_text("They talked of <b>chimneys</b> at length.")

    async def test_a_larger_context_is_loaded_and_everything_is_sent(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        await ask(tab)
        await tab.page.get_by_role("button", name="Larger context: 4,000 tokens").click()
        await is_answered(services, tab, conversation_id)
        assert services.settings.context_tokens == 4000
        answer = (await services.conversations.messages(conversation_id))[-1]
        assert answer.seen.first_id == ""
        await expect(tab.page.locator("#chat .cut")).to_have_count(0)
        await expect(tab.page.locator("#meter")).to_contain_text("of 4,000 tokens")

    async def test_a_larger_context_is_not_offered_where_memory_is_too_small(
        self,
        services: FakeModelServices,
        arrive_full: ArriveFull,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        tab, _ = await arrive_full()
        monkeypatch.setattr("app.memory.SPARE_BYTES", 2**60)
        await ask(tab)
        await expect(tab.page.get_by_role("button", name="Leave out the")).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Larger context")).to_be_hidden()

    async def test_the_question_leaves_with_the_conversation(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        await ask(tab)
        await tab.page.get_by_role("button", name="New chat").click()
        await tab.sees("Everything stays on this computer.")
        await expect(ask_box(tab)).to_be_hidden()

    async def test_on_a_phone_the_question_and_the_mark_fit(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full(viewport={"width": 390, "height": 800})
        await ask(tab)
        await tab.composer.fill(f"8 {TURN * 9}")
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 390
        await expect(tab.send_button).to_be_in_viewport(ratio=1)
        await tab.page.get_by_role("button", name="Leave out the").click()
        await is_answered(services, tab, conversation_id)
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == 390
        figures = tab.page.locator("#chat .figures").last
        await expect(figures).to_contain_text("still in memory")
        assert await figures.evaluate("line => line.scrollWidth - line.clientWidth") == 0


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestMeter:
    async def test_the_meter_is_there_while_an_answer_is_written(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        services.engine.script = None
        await tab.page.get_by_role("button", name="Write another answer").click()
        await expect(tab.stop_button).to_be_visible()
        await tab.reload()
        await expect(tab.page.locator("#meter")).to_contain_text("of 2,000 tokens")
        await expect(tab.stop_button).to_be_visible()
        services.engine.streams[-1].end("Once more.")
        await tab.sees_answer("Once more.")

    async def test_the_meter_follows_what_is_typed_and_what_was_said(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        words = tab.page.locator("#meter")
        last = (await services.conversations.messages(conversation_id))[-1]
        used = last.seen.num_tokens + len(ANSWER)
        await expect(words).to_contain_text(f"{used:,} of 2,000 tokens")
        bar = tab.page.get_by_label("Context in use")
        assert await bar.evaluate("bar => [bar.value, bar.max]") == [used, CONTEXT]
        await tab.composer.fill("x" * 190)
        await expect(words).to_contain_text("too much beside an answer of 200")
        await expect(tab.page.locator("#meter .meter.over")).to_be_visible()
        await tab.page.get_by_role("button", name="New chat").click()
        await tab.composer.fill("")
        await expect(words).to_have_text("Room for 2,000 tokens, about 1,500 words")
        await tab.composer.fill("hello")
        await expect(words).to_contain_text("of 2,000 tokens")
        await expect(tab.page.locator("#meter .meter.calm")).to_be_visible()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestWhatTheModelSaw:
    async def test_the_prompt_is_shown_with_its_control_tokens_and_where_it_came_from(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        await tab.send("A <b>last</b> one &amp; $$x$$\n\n* end")
        link = tab.page.get_by_role("link", name="What the model saw").last
        await tab.sees("A <b>last</b> one")
        await expect(tab.page.locator("#chat .saw")).to_have_count(9)
        await link.click()
        sheet = tab.page.get_by_role("dialog", name="What the model saw")
        await expect(sheet).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Close", exact=True)).to_be_focused()
        answer = (await services.conversations.messages(conversation_id))[-1]
        await expect(sheet).to_contain_text(f"{answer.seen.num_tokens:,} tokens for fake-model")
        await expect(sheet).to_contain_text("were still in the model’s memory")
        await expect(sheet.locator(".doubt")).to_have_count(0)
        tokenizer = (await services.chat_model()).loaded.tokenizer
        controls = {token.token_id: text for text, token in tokenizer.control_tokens.items()}
        prompt = services.engine.streams[-1].prompt
        exact = b"".join(
            controls[each].encode() if each in controls else tokenizer.token_bytes(each)
            for each in prompt
        ).decode()
        assert await sheet.locator("pre").text_content() == exact
        marked = await sheet.locator("pre b").all_text_contents()
        assert marked == [controls[each] for each in prompt if each in controls]
        await tab.page.keyboard.press("Escape")
        await expect(sheet).to_be_hidden()
        await link.click()
        await expect(sheet).to_be_visible()

    async def test_a_prompt_that_can_no_longer_be_built_is_said_to_be_so(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, conversation_id = await arrive_full()
        await services.conversations.set_system_prompt(conversation_id, "Speak like a pirate.")
        await tab.page.get_by_role("link", name="What the model saw").last.click()
        await tab.sees("The exact prompt can no longer be built")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
class TestMemorySettings:
    async def test_a_budget_holds_at_once_and_the_figures_are_live(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        await tab.page.get_by_role("button", name="Settings").click()
        await tab.page.get_by_role("button", name="Memory").click()
        await expect(tab.page.locator("#memory_costs")).to_contain_text("fake-model takes")
        await expect(tab.page.locator("#kv_usage")).to_contain_text("of 1 GB")
        ram = tab.page.get_by_label("Kept in RAM, in GB")
        await ram.fill("2.5")
        await ram.press("Enter")
        await expect(tab.page.locator("#kv_usage")).to_contain_text("of 2.5 GB")
        assert services.settings.kv_ram_bytes == 2_500_000_000
        assert services.settings.kv_disk_bytes == 10_000_000_000
        await tab.page.get_by_role("button", name="Delete all stored KV").click()
        await expect(tab.page.locator("#kv_usage")).to_contain_text("0 bytes of 2.5 GB")
        services.engine.held.append(("", [0] * 7))
        await expect(tab.page.locator("#kv_usage")).to_contain_text("7 bytes of 2.5 GB")

    async def test_what_waits_for_the_next_loading_says_so_and_can_be_had_now(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        await tab.page.get_by_role("button", name="Settings").click()
        await tab.page.get_by_role("button", name="Memory").click()
        threads = tab.page.get_by_label("Threads")
        await expect(tab.page.get_by_label("Read at once")).to_have_value("512")
        await threads.fill("3")
        await threads.press("Tab")
        await tab.sees("These choices count from the next loading of the model on.")
        assert services.memory is not None and services.memory.config.threads is None
        await tab.page.get_by_role("button", name="Load the model again now").click()
        await expect(tab.page.locator("#reload_note")).to_be_hidden()
        assert services.memory is not None and services.memory.config.threads == 3

    async def test_an_impossible_choice_is_a_sentence_and_changes_nothing(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        await tab.page.get_by_role("button", name="Settings").click()
        await tab.page.get_by_role("button", name="Memory").click()
        await expect(tab.page.get_by_label("Read at once")).to_have_value("512")
        await tab.page.get_by_label("Read at once").fill("3")
        await tab.page.get_by_label("Read at once").press("Enter")
        await tab.sees("max_batch_tokens must be at least 32, got 3.")
        assert services.settings.max_batch_tokens == 512

    async def test_the_switches_are_kept(
        self, services: FakeModelServices, arrive_full: ArriveFull
    ) -> None:
        tab, _ = await arrive_full()
        await tab.page.get_by_role("button", name="Settings").click()
        await tab.page.get_by_role("button", name="Answers").click()
        await expect(tab.page.get_by_label("Automatic titles")).not_to_be_checked()
        await tab.page.get_by_label("Reproducible").check()

        async def is_kept() -> bool:
            return services.settings.reproducible

        await eventually(is_kept, "the choice")
        assert not services.settings.automatic_titles


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_temporary_chat_is_listed_as_one_and_answers(
    services: FakeModelServices, arrive_full: ArriveFull
) -> None:
    tab, _ = await arrive_full()
    await tab.page.get_by_role("button", name="New temporary chat").click()
    listed = tab.page.locator("#conversations label", has_text="New conversation\nTemporary")
    await expect(listed).to_have_count(1)
    await tab.sees("it is kept in memory only, and is gone when the app closes")
    await tab.send("For once only")
    await tab.sees_answer(ANSWER)
    (made,) = await services.conversations.list_temporary()
    assert made.title == "For once only"
    note = tab.page.locator("#temporary_note")
    await expect(note).to_be_visible()
    await tab.page.get_by_role("button", name="New chat").click()
    await expect(note).to_be_hidden()
    await services.conversations.purge(made.conversation_id)


def fill(num_tokens: int) -> Fill:
    return Fill(num_used=num_tokens, num_typed=0, limit=800, max_tokens=1000)


@pytest.mark.parametrize(
    ("num_tokens", "state", "words"),
    [
        (100, "calm", "100 of 1,000 tokens"),
        (721, "near", "721 of 1,000 tokens: nearly full"),
        (801, "over", "801 of 1,000 tokens: too much beside an answer of 200"),
        (3000, "over", "3,000 of 1,000 tokens: too much beside an answer of 200"),
    ],
)
def test_the_meter_says_in_words_what_it_shows(num_tokens: int, state: str, words: str) -> None:
    shown = meter(fill(num_tokens))
    assert f'class="meter {state}"' in shown
    assert f"<span>{words}</span>" in shown
    assert f'value="{min(num_tokens, 1000)}"' in shown


def test_an_empty_conversation_has_room_unless_its_instructions_take_it() -> None:
    assert "<span>Room for 1,000 tokens, about 800 words</span>" in meter(fill(6), is_empty=True)
    assert "too much" in meter(fill(801), is_empty=True)
