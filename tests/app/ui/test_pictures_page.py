"""Pictures on the page: added, taken away, sent, shown, and refused, in a real browser."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import expect

from app.chat.senses import TEXT_ALONE, Senses
from tests.app.media.test_reading import recorded
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.visitor import Visitor, eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


def file(name: str, colour: str = "red") -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", (80, 60), colour).save(buffer, "PNG")
    return {"name": name, "mimeType": "image/png", "buffer": buffer.getvalue()}


@pytest.fixture
def seeing(services: FakeServices) -> Iterator[FakeServices]:
    services.senses = Senses(sees=True, hears=True)
    yield services
    services.senses = TEXT_ALONE


async def add(tab: Visitor, *files: dict[str, Any]) -> None:
    async with tab.page.expect_file_chooser() as choosing:
        await tab.page.locator("#attach").click()
    await (await choosing.value).set_files(list(files))


async def test_a_model_that_sees_nothing_has_no_button(arrive: Arrive) -> None:
    tab = await arrive()
    await expect(tab.page.locator("#attach")).to_be_hidden()
    await expect(tab.page.locator("#attached_strip")).to_be_hidden()


async def test_a_picture_is_added_sent_and_shown_again(
    arrive: Arrive, seeing: FakeServices
) -> None:
    tab = await arrive()
    button = tab.page.locator("#attach")
    await expect(button).to_have_text("Add a picture or a sound")
    await add(tab, file("cat.png"), file("dog.png", "blue"))
    chips = tab.page.locator("#attached_strip .chip")
    await expect(chips).to_have_count(2)
    await tab.page.get_by_role("button", name="Leave out dog.png").click()
    await expect(chips).to_have_count(1)
    # The message box keeps its keys.
    await expect(tab.composer).to_be_focused()
    await tab.send("What is this?")
    await tab.sees_answer("Hello there.")
    await expect(chips).to_have_count(0)
    shown = tab.page.locator("#chat .shown img")
    await expect(shown).to_have_count(1)
    assert await shown.get_attribute("alt") == "cat.png"

    async def is_loaded() -> bool:
        return bool(await shown.evaluate("image => image.complete && image.naturalWidth === 80"))

    await eventually(is_loaded, "the picture in the chat")
    await tab.reload()
    await eventually(is_loaded, "the picture after a reload")
    (conversation, *_) = await seeing.conversations.list()
    asked, _ = await seeing.conversations.messages(conversation.conversation_id)
    assert [each.name for each in asked.attachments] == ["cat.png"]


async def test_a_picture_alone_is_a_message(arrive: Arrive, seeing: FakeServices) -> None:
    tab = await arrive()
    await tab.page.locator("#new_chat").click()
    await expect(tab.page.locator("#attach")).to_be_visible()
    await add(tab, file("alone.png"))
    await expect(tab.page.locator("#attached_strip .chip")).to_have_count(1)
    await tab.composer.press("Enter")
    await tab.sees_answer("Hello there.")
    (conversation, *_) = await seeing.conversations.list()
    assert conversation.title == "alone.png"


async def test_what_is_pasted_is_added(arrive: Arrive, seeing: FakeServices) -> None:
    tab = await arrive()
    await expect(tab.page.locator("#attach")).to_be_visible()
    content = list(file("x.png")["buffer"])
    await tab.composer.evaluate(
        """(box, content) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(content)], "shot.png", { type: "image/png" }));
          const how = { clipboardData: data, bubbles: true, cancelable: true };
          box.dispatchEvent(new ClipboardEvent("paste", how));
        }""",
        content,
    )
    await expect(tab.page.locator("#attached_strip .chip img")).to_have_count(1)


async def test_a_sound_is_told_with_its_length(arrive: Arrive, seeing: FakeServices) -> None:
    tab = await arrive()
    await expect(tab.page.locator("#attach")).to_be_visible()
    talk = {"name": "talk.wav", "mimeType": "audio/wav", "buffer": recorded(seconds=2.0)}
    await add(tab, talk)
    await expect(tab.page.locator("#attached_strip .chip")).to_contain_text("talk.wav, 0:02")


async def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(
    arrive: Arrive, seeing: FakeServices
) -> None:
    tab = await arrive()
    await expect(tab.page.locator("#attach")).to_be_visible()
    await add(tab, {"name": "notes.png", "mimeType": "image/png", "buffer": b"no picture"})
    note = tab.page.get_by_role("alert")
    await expect(note).to_contain_text("notes.png cannot be used, because it is no PNG")
    await expect(tab.page.locator("#attached_strip .chip")).to_have_count(0)
    tab.faults[:] = [each for each in tab.faults if "400 (Bad Request)" not in each]


DROP = """(target, [content, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(content)], name, { type: "image/png" }));
  for (const type of ["dragover", "drop"]) {
    const how = { dataTransfer: data, bubbles: true, cancelable: true };
    target.dispatchEvent(new DragEvent(type, how));
  }
}"""


async def test_a_picture_that_falls_on_a_chat_is_added(
    arrive: Arrive, seeing: FakeServices
) -> None:
    tab = await arrive()
    await expect(tab.page.locator("#attach")).to_be_visible()
    content = list(file("x.png")["buffer"])
    await tab.page.locator("#chat").evaluate(DROP, [content, "cat.png"])
    await expect(tab.page.locator("#attached_strip .chip img")).to_have_count(1)


async def test_where_the_model_sees_nothing_a_dropped_picture_is_refused_in_a_sentence(
    arrive: Arrive, services: FakeServices
) -> None:
    tab = await arrive()
    content = list(file("x.png")["buffer"])
    await tab.page.locator("#chat").evaluate(DROP, [content, "cat.png"])
    await expect(tab.page.get_by_role("alert")).to_contain_text("cannot read image")
    await expect(tab.page.locator("#attached_strip .chip")).to_have_count(0)
    await expect(tab.page.locator("#asks_note")).to_have_count(0)
    tab.faults[:] = [each for each in tab.faults if "400 (Bad Request)" not in each]


async def test_only_the_page_may_bring_a_file(arrive: Arrive, seeing: FakeServices) -> None:
    tab = await arrive()
    url = f"{tab.url}_app/attachments"
    reply = await tab.page.request.post(url, data=b"x")
    assert reply.status == 403
    gone = await tab.page.request.get(f"{url}/new/0123456789abcdef/preview")
    assert gone.status == 404
    assert json.loads(await (await tab.page.request.get(f"{tab.url}_app/state")).text())["sees"]
