"""The user's own files on the page, in a real browser: sheet, search, pages, and the chat."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Route, expect

from app.chat.sight import Fill, WholeSight
from app.chat.whole_reading import Cost
from app.documents.answering import Answering
from app.documents.citation import Citation, Span, Verdict
from app.documents.rows import roots
from app.documents.scope import WHOLE_LIBRARY, Scope
from tests.app.documents.pdf_file import pdf_of
from tests.app.ui.conftest import Arrive
from tests.fake_embedder import write_fake_model
from tests.fakes_chat import FakeServices, Script
from tests.visitor import Visitor, eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
NASTY = "<img src=x onerror=alert(1)>\u202efdp.txt"
LEASE = [["A lease"], ["The rent is due on the first day of a month.", "No dogs are allowed."]]

DROP = """(target, [text, name]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))], name));
    for (const type of ["dragover", "drop"]) {
        const how = { dataTransfer: data, bubbles: true, cancelable: true };
        target.dispatchEvent(new DragEvent(type, how));
    }
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def papers(services: FakeServices, tmp_path: Path) -> AsyncIterator[Path]:
    folder = tmp_path / "papers"
    (folder / "deep").mkdir(parents=True)
    (folder / "lease.pdf").write_bytes(pdf_of(LEASE))
    (folder / "secret.pdf").write_bytes(pdf_of([["The vault opens at noon."]], password="abc"))
    (folder / "deep" / NASTY).write_text("A letter about rivers and vineyards.")
    (folder / "empty.txt").touch()
    yield folder
    library = services.documents
    for root in await library.ask(roots):
        await library.remove(Path(root.path))


async def opened(arrive: Arrive, **options: object) -> Visitor:
    tab = await arrive(**options)
    await tab.page.locator("#open_documents").click()
    await tab.page.locator("#documents_list li").first.wait_for()
    return tab


async def added(tab: Visitor, folder: Path) -> None:
    await tab.page.get_by_label("Path of a folder or a file").fill(str(folder))
    await tab.page.get_by_role("button", name="Add by its path").click()
    await expect(tab.page.locator("#documents_list .name")).to_have_text(["papers"])
    await expect(tab.page.locator("#documents_progress")).to_be_hidden()


def file_row(tab: Visitor, name: str) -> Locator:
    return tab.page.locator("#documents_files ul.rows > li").filter(has_text=name)


async def test_a_folder_is_added_and_every_file_says_what_became_of_it(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive)
    page = tab.page
    await tab.sees("Nothing is here yet")
    await page.get_by_label("Path of a folder or a file").fill("papers")
    await page.get_by_role("button", name="Add by its path").click()
    await expect(page.locator("#documents_said")).to_contain_text("is not a whole path")
    await added(tab, papers)
    await expect(page.locator("#documents_list")).to_contain_text(
        "4 files: 2 read, 1 needs a password, 1 empty"
    )
    await page.get_by_role("button", name="Files of papers").click()
    await expect(file_row(tab, "lease.pdf")).to_contain_text("2 pages")
    await expect(file_row(tab, "onerror")).to_contain_text("\ufffdfdp.txt")
    await page.get_by_label("State", exact=True).select_option("empty")
    await expect(page.locator("#documents_files ul.rows > li")).to_have_count(1)
    await page.get_by_label("State", exact=True).select_option("")

    secret = file_row(tab, "secret.pdf")
    await secret.get_by_label("Password of secret.pdf").fill("abc")
    await secret.get_by_role("button", name="Open with it").click()
    await expect(secret).to_contain_text("1 page")

    await page.get_by_role("tab", name="Places").click()
    row = page.locator("#documents_list li")
    await row.get_by_role("button", name="Read papers again").click()
    await expect(row.get_by_role("alert")).to_contain_text("Read 4 files with 4 pages of papers")
    # As when the reading of a file has come to its end meanwhile.
    await page.evaluate("inglenook.documents.take({ progress: { is_reading: false } })")
    await expect(row.get_by_role("alert")).to_contain_text("Read 4 files with 4 pages of papers")
    await row.get_by_role("button", name="Remove papers").click()
    await expect(row.get_by_role("alert")).to_contain_text("The files themselves stay")
    await row.get_by_role("button", name="Yes, remove").click()
    await tab.sees("Nothing is here yet")
    assert (papers / "lease.pdf").exists()


async def test_a_path_that_is_typed_while_another_is_looked_at_is_added_too(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive)
    page, comes = tab.page, asyncio.Event()

    async def late(route: Route) -> None:
        await comes.wait()
        await route.continue_()

    await page.route("**/_app/documents/add", late)
    field = page.get_by_label("Path of a folder or a file")
    for path in (papers / "lease.pdf", papers / "deep"):
        await field.fill(str(path))
        await field.press("Enter")
    await expect(page.locator("#documents_coming")).to_contain_text("Looking at")
    await field.fill("wrong")
    await field.press("Enter")
    comes.set()
    await expect(page.locator("#documents_list .name")).to_have_text(["deep", "lease.pdf"])
    await expect(page.locator("#documents_said")).to_contain_text("is not a whole path")
    await expect(field).to_have_value("wrong")
    await expect(page.locator("#documents_coming p")).to_have_count(0)


async def test_words_are_found_and_boxed_on_the_picture_of_their_page(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive, permissions=["clipboard-read", "clipboard-write"])
    page = tab.page
    await added(tab, papers)
    await page.get_by_role("tab", name="Search").click()
    await expect(page.get_by_label("Search in your files")).to_be_focused()
    await page.keyboard.type("dogs allowed")
    await page.keyboard.press("Enter")
    hit = page.get_by_role("button", name="Open lease.pdf, page 2")
    await expect(page.locator("#documents mark").first).to_have_text("dogs")
    await hit.click()
    panel = page.get_by_role("dialog", name="A page of your files")
    await expect(panel.get_by_role("img", name="lease.pdf, page 2")).to_be_visible()
    await expect(panel.locator(".frame")).to_have_count(1)
    await panel.get_by_role("button", name="Copy quote").click()
    await expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    assert "No dogs are allowed." in await page.evaluate("navigator.clipboard.readText()")
    await panel.get_by_role("button", name="Show its text").click()
    await expect(panel.locator(".text mark")).to_contain_text("No dogs are allowed.")
    await panel.get_by_role("button", name="Page before").click()
    await expect(panel.locator(".text")).to_have_text("A lease")
    await expect(panel.get_by_role("button", name="Page before")).to_be_disabled()
    (papers / "lease.pdf").unlink()
    await panel.get_by_role("button", name="Page after").click()
    await expect(panel.locator("#passage_said")).to_contain_text("cannot be opened now")
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(hit).to_be_focused()


async def test_reading_shows_how_far_it_is_and_is_paused_until_it_goes_on(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    (papers / "lease.pdf").write_bytes(pdf_of([[f"Clause {number}"] for number in range(1500)]))
    await services.documents.add(papers)
    services.documents.pause()
    tab = await opened(arrive)
    page, progress = tab.page, tab.page.locator("#documents_progress")
    await expect(progress).to_contain_text("4 files to read")
    await expect(progress).to_contain_text("paused")
    await page.get_by_role("tab", name="Files").click()
    await expect(page.locator("#documents_files .found")).to_contain_text("4 waiting")
    await page.get_by_role("button", name="Go on reading").click()
    await expect(progress).to_be_hidden()
    await expect(file_row(tab, "lease.pdf")).to_contain_text("1,500 pages")


async def test_progress_is_asked_for_again_after_a_failure(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    (papers / "lease.pdf").write_bytes(pdf_of([[f"Clause {number}"] for number in range(1500)]))
    library = services.documents
    await library.add(papers)
    library.pause()
    tab = await opened(arrive)
    page, progress = tab.page, tab.page.locator("#documents_progress")
    await expect(progress).to_contain_text("paused")
    # It is asked for while it is paused, too: the app may be gone.
    async with page.expect_response("**/_app/documents/progress"):
        pass
    reading = {"is_reading": True, "is_paused": False, "words": "Reading", "share": None}
    await page.route("**/_app/documents/go_on", lambda route: route.fulfill(json=reading))
    await page.route("**/_app/documents/progress", lambda route: route.abort())
    await page.get_by_role("button", name="Go on reading").click()
    said = page.locator("#documents_said")
    await expect(said).to_contain_text("The app does not answer")
    await expect(progress).to_contain_text("Reading")
    await page.unroute("**/_app/documents/progress")
    await expect(progress).to_contain_text("paused")
    await expect(said).to_be_hidden()
    library.go_on()


async def test_the_figures_of_a_place_are_counted_while_it_is_read(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    library = services.documents
    await library.add(papers)
    library.pause()
    tab = await opened(arrive)
    place = tab.page.locator("#documents_list li")
    await expect(place).to_contain_text("4 waiting")
    select = place.locator("select")
    await select.focus()
    (papers / "deep" / NASTY).unlink()
    await library.look(papers)
    await expect(place).to_contain_text("3 waiting")
    await expect(select).to_be_focused()
    library.go_on()


async def test_on_a_narrow_screen_turning_the_page_is_one_row_and_the_rest_the_next(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive)
    page = tab.page
    await page.set_viewport_size({"width": 390, "height": 800})
    await added(tab, papers)
    await page.get_by_role("tab", name="Search").click()
    await page.keyboard.type("lease")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Open lease.pdf, page 1").click()
    await page.locator("#passage img").wait_for()
    tops = []
    for name in ("before", "after", "as", "copy"):
        box = await page.locator(f"#passage_{name}").bounding_box()
        assert box is not None
        tops.append(round(box["y"]))
    assert tops[0] == tops[1] < tops[2] == tops[3]


async def test_a_page_that_is_on_its_way_cannot_be_turned_or_copied(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive)
    page = tab.page
    await added(tab, papers)
    await page.get_by_role("tab", name="Search").click()
    await page.keyboard.type("lease")
    await page.keyboard.press("Enter")
    comes = asyncio.Event()

    async def late(route: Route) -> None:
        await comes.wait()
        await route.continue_()

    await page.route("**/_app/documents/page", late)
    await page.get_by_role("button", name="Open lease.pdf, page 1").click()
    panel = page.get_by_role("dialog", name="A page of your files")
    after = panel.get_by_role("button", name="Page after")
    acts = panel.locator(".actions button")
    await expect(acts).to_have_count(4)
    await expect(panel.locator(".actions button:disabled")).to_have_count(4)
    comes.set()
    await expect(after).to_be_enabled()
    comes.clear()
    await after.focus()
    await page.keyboard.press("Enter")
    await expect(panel.locator(".actions button:disabled")).to_have_count(4)
    comes.set()
    before = panel.get_by_role("button", name="Page before")
    await expect(before).to_be_enabled()
    comes.clear()
    await before.focus()
    await page.keyboard.press("Enter")
    await expect(panel.locator(".actions button:disabled")).to_have_count(4)
    comes.set()
    await expect(after).to_be_enabled()


async def test_files_are_dropped_on_the_sheet_and_put_into_a_collection(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await opened(arrive)
    page, sheet = tab.page, tab.page.locator("#documents")
    await sheet.evaluate(DROP, [b64encode(b"MZ").decode(), "setup.exe"])
    await expect(page.locator("#documents_said")).to_contain_text("is no kind of file that is read")
    await sheet.evaluate(DROP, [b64encode(b"All about vineyards.").decode(), "wine.txt"])
    row = page.locator("#documents_list li")
    await expect(row).to_contain_text("1 file: 1 read")
    await row.get_by_label("Put Dropped on this page into").select_option(label="a new collection…")
    await row.get_by_label("Name of the new collection").fill("Cellar")
    await page.keyboard.press("Enter")
    await expect(row.locator(".chip")).to_contain_text("Cellar")
    await page.get_by_role("tab", name="Collections").click()
    await expect(page.locator("#documents_collections ul.rows")).to_contain_text("Cellar")
    await page.get_by_role("button", name="Take Dropped on this page out of Cellar").click()
    await expect(page.locator("#documents_collections ul.rows > li")).to_have_count(0)
    await page.get_by_role("tab", name="Places").click()
    await row.get_by_role("button", name="Delete Dropped on this page").click()
    await row.get_by_role("button", name="Yes, delete").click()
    await tab.sees("Nothing is here yet")
    assert list(services.received.folder.iterdir()) == []


async def test_a_conversation_asks_a_collection_and_its_chips_open_the_page(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    library = services.documents
    await library.add(papers, collection="Home")
    await library.settled()
    grounds = await Answering(lambda: library).look("Are dogs allowed?", WHOLE_LIBRARY)
    content = "No dogs [1]. Cats are."
    citation = Citation(
        number=1, sentence=Span(0, 12), mark=Span(8, 11), verdict=Verdict.KEPT, written=1
    )
    grounds = replace(grounds, citations=(citation,), unfound=(Span(13, 22),))
    services.jobs.script = Script(pieces=(content,), grounds=grounds)
    tab = await arrive()
    page = tab.page
    await page.get_by_label("Which of your files are asked").click()
    await page.get_by_role("option", name="Files: Home").click()
    await tab.send("Are dogs allowed?")
    chip = page.locator("#chat a.cite").first
    await expect(chip).to_have_text("lease.pdf, p. 2")
    await expect(page.locator("#chat .unfound")).to_have_text("Cats are.")
    await expect(page.locator("#chat .looked")).to_contain_text("1: lease.pdf, p. 2")
    newest = (await services.conversations.list(limit=1))[0]
    assert newest.documents == Scope(collections=("Home",))
    await chip.click()
    panel = page.get_by_role("dialog", name="A page of your files")
    await expect(panel.get_by_role("img", name="lease.pdf, page 2")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(chip).to_be_focused()
    await tab.reload()
    await expect(page.get_by_label("Which of your files are asked")).to_have_value("Files: Home")


async def test_a_document_dropped_on_the_chat_is_offered_to_be_asked(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    tab = await arrive()
    page = tab.page
    given = [b64encode(b"All about vineyards.").decode(), "wine.txt"]
    await page.locator("#composer").evaluate(DROP, given)
    await expect(page.locator("#asks_note")).to_contain_text("Add wine.txt to your documents")
    await page.get_by_role("button", name="No", exact=True).click()
    await expect(page.locator("#asks_note")).to_have_count(0)
    await page.locator("#composer").evaluate(DROP, given)
    await page.get_by_role("button", name="Add and ask").click()
    await expect(page.get_by_label("Which of your files are asked")).to_have_value(
        "Files: wine.txt"
    )
    await tab.send("What is it about?")
    await tab.sees_answer("Hello there.")
    newest = (await services.conversations.list(limit=1))[0]
    assert newest.documents == Scope(paths=(str(services.received.folder / "wine.txt"),))

    async def is_read() -> bool:
        return bool((await services.documents.find("vineyards")).hits)

    await eventually(is_read, "the reading of what was dropped")


async def test_the_sheet_fits_a_phone_and_is_left_with_escape(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    await services.documents.add(papers, collection="Home")
    await services.documents.settled()
    tab = await arrive(viewport={"width": 390, "height": 800})
    page = tab.page
    await page.get_by_role("button", name="Conversations", exact=True).click()
    await page.locator("#open_documents").click()
    for name in ("Files", "Search", "Collections", "Places"):
        await page.get_by_role("tab", name=name).click()
        panel = page.locator("#documents [role=tabpanel]:visible")
        await panel.locator("> *").first.wait_for()
        assert await panel.evaluate("part => part.scrollWidth - part.clientWidth") <= 0
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.keyboard.press("Escape")
    await expect(page.locator("#documents")).to_be_hidden()
    await page.locator("#open_documents").click()
    await page.get_by_role("button", name="Ask questions of papers").click()
    # The list of conversations would lie over the message box.
    await page.locator("#composer textarea").click()


async def test_one_file_is_chosen_to_be_read_whole_after_its_cost_was_shown(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    await services.documents.add(papers)
    await services.documents.settled()
    cost = Cost(num_tokens=6_142, most=6_768, needed=8_192, trained=8_192, larger=None)
    services.sights.whole_sight = WholeSight(
        name="lease.pdf", num_pages=12, cost=cost, kv_bytes=141_000_000
    )
    services.sights.filled = Fill(
        num_used=6_200, num_typed=0, limit=6_768, max_tokens=8_192, num_whole=6_142
    )
    tab = await arrive()
    page = tab.page
    await expect(page.locator("#whole_row")).to_be_hidden()
    await page.locator("#open_documents").click()
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_role("button", name="Ask questions of lease.pdf").click()
    await expect(page.locator("#documents")).to_be_hidden()
    chosen = page.get_by_label("Which of your files are asked")
    await expect(chosen).to_have_value("Files: lease.pdf")
    await expect(page.locator("#whole_cost")).to_contain_text(
        "12 pages, 6,142 of 6,768 tokens that fit, 141 MB of memory."
    )
    await page.get_by_label("Read all of it").check()
    await expect(chosen).to_have_value("Whole file: lease.pdf")
    # Before anything is said, as the document takes most of the room.
    await expect(page.locator("#meter")).to_contain_text("6,200 of 8,192 tokens")
    await tab.send("Are dogs allowed?")
    await tab.sees_answer("Hello there.")
    newest = (await services.conversations.list(limit=1))[0]
    assert newest.documents == Scope(paths=(str(papers / "lease.pdf"),), as_whole=True)
    await tab.reload()
    await expect(page.get_by_label("Read all of it")).to_be_checked()
    await page.get_by_role("button", name="Sum it up").click()
    await tab.sees("Sum up the file, section by section.")
    await page.get_by_label("Read all of it").uncheck()
    await expect(chosen).to_have_value("Files: lease.pdf")
    newest = (await services.conversations.list(limit=1))[0]
    assert newest.documents == Scope(paths=(str(papers / "lease.pdf"),))


async def test_a_file_without_room_says_that_it_is_searched(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    await services.documents.add(papers)
    await services.documents.settled()
    services.sights.whole_sight = WholeSight(
        name="lease.pdf",
        num_pages=60,
        cost=Cost(num_tokens=51_000, most=6_768, needed=52_424, trained=131_072, larger=65_536),
        kv_bytes=1_000_000_000,
    )
    tab = await arrive()
    page = tab.page
    await page.locator("#open_documents").click()
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_role("button", name="Ask questions of lease.pdf").click()
    await expect(page.locator("#whole_cost")).to_contain_text(
        "lease.pdf has 51,000 tokens, and 6,768 fit beside a question and its answer: it is"
        " searched. A context of 65,536 tokens would hold it"
    )
    sight = services.sights.whole_sight
    assert sight.cost is not None
    small = replace(sight.cost, trained=8_192, larger=None)
    services.sights.whole_sight = replace(sight, cost=small)
    await page.reload()
    await tab.settle()
    await page.locator("#open_documents").click()
    await page.get_by_role("tab", name="Files").click()
    await page.get_by_role("button", name="Ask questions of lease.pdf").click()
    await expect(page.locator("#whole_cost")).to_contain_text(
        "It needs a context of 52,424 tokens, and this model was made for 8,192: to have it read"
        " whole, choose a model that was made for more."
    )
    box = page.get_by_label("Read all of it")
    await expect(box).to_be_disabled()
    await expect(box).to_have_css("opacity", "0.55")
    await expect(page.locator("#whole_row label span")).to_have_css("opacity", "0.55")
    assert tab.faults == []


async def test_a_file_that_is_asked_and_has_a_new_name_or_is_gone_is_said_to(
    services: FakeServices, arrive: Arrive, papers: Path
) -> None:
    await services.documents.add(papers)
    await services.documents.settled()
    lease, empty = papers / "lease.pdf", papers / "empty.txt"
    renamed = await services.conversations.create("Renamed", documents=Scope(paths=(str(lease),)))
    scope = Scope(paths=(str(empty), str(lease)))
    left = await services.conversations.create("Left", documents=scope)
    tab = await arrive()
    page = tab.page
    chosen, state = page.get_by_label("Which of your files are asked"), page.locator("#asks_state")
    await tab.open("Renamed")
    await expect(chosen).to_have_value("Files: lease.pdf")
    await expect(state).to_be_hidden()
    lease.rename(papers / "contract.pdf")
    empty.unlink()
    await services.documents.look()
    # Who comes back to the window sees what has become of it.
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(chosen).to_have_value("Files: contract.pdf")
    await expect(state).to_have_text("lease.pdf has a new name, and is asked by it: contract.pdf.")
    now = await services.conversations.get(renamed.conversation_id)
    assert now.documents == Scope(paths=(str(papers / "contract.pdf"),))
    await tab.send("Are dogs allowed?")
    await tab.sees_answer("Hello there.")
    await expect(state).to_be_hidden()

    await tab.open("Left")
    await expect(state).to_contain_text("empty.txt is not in your library any more")
    await page.get_by_role("button", name="Ask without it").click()
    await expect(chosen).to_have_value("Files: contract.pdf")
    # Here nothing was asked since the other one was renamed.
    await expect(state).to_contain_text("lease.pdf has a new name")
    (papers / "contract.pdf").unlink()
    await services.documents.look()
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(chosen).to_have_value("Files: contract.pdf (gone)")
    await expect(page.locator("#whole_row")).to_be_hidden()
    await page.get_by_role("button", name="Ask without it").click()
    await expect(chosen).to_have_value("Files: none")
    await expect(state).to_be_hidden()
    now = await services.conversations.get(left.conversation_id)
    assert now.documents is None


async def test_a_long_name_leaves_its_arrow_free_beside_open_settings(
    services: FakeServices, arrive: Arrive
) -> None:
    path = "/papers/lease-agreement-for-the-old-mill-by-the-river.txt"
    await services.conversations.create("Long name", documents=Scope(paths=(path,)))
    tab = await arrive(viewport={"width": 1280, "height": 800})
    await tab.open("Long name")
    await tab.page.get_by_role("button", name="Settings").first.click()
    await tab.page.locator("#right.open").wait_for()
    free = """() => {
      const [text, arrow] = ["#asks input", "#asks .icon-wrap"].map((each) =>
        document.querySelector(each).getBoundingClientRect());
      const { paddingRight } = getComputedStyle(document.querySelector("#asks input"));
      return text.right - parseFloat(paddingRight) - arrow.left;
    }"""
    assert await tab.page.evaluate(free) <= 0


async def test_long_lists_keep_all_digits_of_their_numbers(
    services: FakeServices, arrive: Arrive
) -> None:
    conversation = await services.conversations.create("Long list")
    lines = "\n".join(f"{number}. Item" for number in range(995, 1005))
    texts = ["One", "1. Item", "Ten", "7. Item\n8. Item\n9. Item\n10. Item", "Many", lines]
    await services.tell(conversation.conversation_id, texts)
    tab = await arrive()
    await tab.open("Long list")
    await expect(tab.page.locator("#chat ol")).to_have_count(3)
    # How much wider the room is than the number that stands in it.
    spare = """() => [...document.querySelectorAll("#chat ol")].map((list) => {
      const number = document.createElement("span");
      number.textContent = `${list.start + list.children.length - 1}. `;
      number.style.cssText = "position: absolute; white-space: pre";
      list.lastElementChild.append(number);
      const { width } = number.getBoundingClientRect();
      number.remove();
      return parseFloat(getComputedStyle(list).paddingLeft) - width;
    })"""
    assert min(await tab.page.evaluate(spare)) >= 0


async def test_what_finds_by_meaning_is_chosen_on_the_sheet(
    services: FakeServices, arrive: Arrive, papers: Path, tmp_path: Path
) -> None:
    model = write_fake_model(tmp_path / "tiny.json")
    tab = await opened(arrive)
    await added(tab, papers)
    row = tab.page.locator("#documents_meaning")
    await expect(row).to_contain_text("Words alone are searched")
    await row.get_by_label("By what is searched").select_option(label="by a GGUF file\u2026")
    await row.get_by_label("Path of an embedding model").fill(str(model))
    await row.get_by_role("button", name="Try it").click()
    await expect(row).to_contain_text("have to be made")
    await row.get_by_role("button", name="Yes, choose it").click()
    await expect(row.get_by_label("By what is searched")).to_have_value(str(model))
    await row.get_by_label("By what is searched").select_option("none")
    await row.get_by_role("button", name="Yes, choose it").click()
    await expect(row).to_contain_text("Words alone are searched")
    assert services.settings.embedder == "none"
