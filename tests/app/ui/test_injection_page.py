"""Files that give orders, on the page: an answer that repeats them, their passages and the search
make no link, load nothing, and run nothing. Whatever is asked of another host is a fault."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from app.documents.answering import Answering
from app.documents.grounds import Grounds
from app.documents.rows import roots
from app.documents.scope import WHOLE_LIBRARY, Scope
from tests.app.documents.injected import FILES, QUESTION, SEEN
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices, Script

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AT_ONCE = 16
"""Answers in one conversation: no more are shown at once."""
# Whatever could lead away or load, but for what the page has of its own.
LOADED = """() => {
  const own = (address) => !address || address.startsWith("#") || address.startsWith("/")
    || address.startsWith("blob:") || address.startsWith(location.origin);
  const found = [];
  for (const part of document.querySelectorAll("#chat *, #documents *, dialog *"))
    for (const name of ["href", "src", "srcset", "action", "formaction", "data", "poster"]) {
      const address = part.getAttribute(name);
      if (address !== null && !own(address)) found.push(`${part.tagName} ${name} ${address}`);
    }
  for (const part of document.querySelectorAll("#chat .prose *, .text *"))
    for (const name of part.getAttributeNames())
      if (name.startsWith("on")) found.push(`${part.tagName} ${name}`);
  const inside = document.querySelectorAll("iframe, object, embed, meta[http-equiv=refresh]");
  for (const part of inside) found.push(part.outerHTML.slice(0, 200));
  return found;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def papers(services: FakeServices, tmp_path: Path) -> AsyncIterator[Path]:
    folder = tmp_path / "papers"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    library = services.documents
    await library.add(folder)
    await library.settled()
    yield folder
    for root in await library.ask(roots):
        await library.remove(Path(root.path))


async def grounds_in(services: FakeServices, scope: Scope) -> Grounds:
    return await Answering(lambda: services.documents).look(QUESTION, scope)


async def nothing_is_loaded(page: Page) -> None:
    assert await page.evaluate(LOADED) == []
    assert await page.evaluate("window.x") is None


@pytest.mark.parametrize("first", range(0, len(FILES), AT_ONCE))
async def test_answers_that_repeat_them_lead_nowhere(
    services: FakeServices, arrive: Arrive, papers: Path, first: int
) -> None:
    title = f"Orders from {first} on"
    conversation = await services.conversations.create(title, documents=WHOLE_LIBRARY)
    repeated = []
    for name in list(FILES)[first : first + AT_ONCE]:
        grounds = await grounds_in(services, Scope(paths=(str(papers / name),)))
        text = f"{name}\n\n{grounds.quotations[0].text}"
        repeated.append(text)
        await services.tell(conversation.conversation_id, [QUESTION, text], grounds=grounds)
    tab = await arrive()
    await tab.open(title)
    await expect(tab.page.locator("#chat .looked")).to_have_count(len(repeated))
    await nothing_is_loaded(tab.page)
    grounds = await grounds_in(services, WHOLE_LIBRARY)
    services.jobs.script = Script(pieces=[f"{text}\n\n" for text in repeated], grounds=grounds)
    await tab.send("And all of them?")
    await expect(tab.page.locator("#chat .looked")).to_have_count(len(repeated) + 1)
    await nothing_is_loaded(tab.page)


async def test_the_search_and_the_passages_show_them_as_letters(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await arrive()
    page = tab.page
    await page.locator("#open_documents").click()
    await page.get_by_role("tab", name="Search").click()
    panel = page.get_by_role("dialog", name="A page of your files")
    for words in ("javascript press here", "evil.example picture", "obey blue"):
        await page.get_by_label("Search in your files").fill(words)
        await page.keyboard.press("Enter")
        await page.locator("#documents mark").first.wait_for()
        await nothing_is_loaded(page)
    await page.get_by_role("tab", name="Files").click()
    await expect(page.locator("#documents_files ul.rows > li")).to_have_count(len(FILES))
    await nothing_is_loaded(page)
    await page.get_by_role("tab", name="Search").click()
    for name in ("tags.txt", "javascript.md", "address.txt", "remote.html"):
        assert name in SEEN
        await page.get_by_label("Search in your files").fill(QUESTION)
        await page.keyboard.press("Enter")
        hit = page.get_by_role("button", name=f"Open {name}, page 1")
        if not await hit.count():
            continue
        await hit.click()
        await expect(panel.locator(".text")).to_contain_text("river Inn")
        await nothing_is_loaded(page)
        await page.keyboard.press("Escape")
