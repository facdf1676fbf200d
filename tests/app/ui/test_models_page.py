"""The sheet of the models in a real browser: list, search, download, use, remove, connections."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from engine.adapter import Adapter
from tests.app.ui.conftest import Arrive
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_chat import FakeServices
from tests.fakes_hub import FakeHub
from tests.visitor import Visitor, eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
REPO = "someone/Tiny-GGUF"


@pytest.fixture
def hub(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub
    for file in services.paths.models.iterdir():
        file.unlink()


async def opened(arrive: Arrive, **options: object) -> Visitor:
    tab = await arrive(**options)
    await tab.page.locator("#open_models").click()
    await tab.page.locator("#models ul.models li").first.wait_for()
    return tab


def row(tab: Visitor, name: str) -> Locator:
    exact = tab.page.get_by_text(name, exact=True)
    return tab.page.locator("#models_here ul.models li").filter(has=exact)


async def test_a_model_is_found_downloaded_used_and_removed(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    content = write_tiny_model(services.paths.cache / "tiny.gguf").read_bytes()
    hub.files[REPO] = {"Tiny-Q4_K_M.gguf": content}
    tab = await opened(arrive)
    page = tab.page
    await expect(row(tab, "starter")).to_contain_text("in use")
    await page.get_by_role("tab", name="Connections").click()
    await tab.sees("No connection to another machine was ever opened.")

    await page.get_by_role("tab", name="To download").click()
    await tab.sees("Good for their size, and free for any use")
    await page.get_by_label("A name at Hugging Face").fill("tiny")
    await page.get_by_role("button", name="Search Hugging Face").click()
    await page.get_by_role("button", name=f"Sizes of {REPO}").click()
    await page.get_by_role("button", name=f"Download {REPO}").click()
    mine = row(tab, "Tiny-Q4_K_M")
    await expect(mine).to_contain_text("downloaded")
    await expect(mine.locator(".verdict b")).to_have_text("fits well")

    await mine.get_by_role("button", name="Use Tiny-Q4_K_M").click()
    await page.wait_for_load_state()
    await tab.settle()
    assert [path.name for path in services.model.used] == ["Tiny-Q4_K_M.gguf"]

    await page.locator("#open_models").click()
    await row(tab, "Tiny-Q4_K_M").get_by_role("button", name="Remove Tiny-Q4_K_M").click()
    await tab.sees("Delete Tiny-Q4_K_M (")
    await page.get_by_role("button", name="Yes, remove Tiny-Q4_K_M").click()
    await expect(row(tab, "Tiny-Q4_K_M")).to_have_count(0)
    assert not (services.paths.models / "Tiny-Q4_K_M.gguf").exists()

    await page.get_by_role("tab", name="Connections").click()
    await expect(page.locator("#models_connections tbody tr").first).to_contain_text(
        "download of Tiny-Q4_K_M"
    )


async def test_a_download_shows_its_way_over_a_reload_and_can_be_paused_and_given_up(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    hub.files[REPO] = {"Slow-Q8_0.gguf": bytes(120_000_000)}
    hub.wrong.bytes_per_s = 1_500_000
    name = await services.library.download(REPO)
    tab = await opened(arrive)
    way = tab.page.locator("#models_progress .download")
    await expect(way).to_contain_text("of 120 MB")
    await expect(way).to_contain_text("MB/s")
    await tab.reload()
    await tab.page.locator("#open_models").click()
    await way.get_by_role("button", name=f"Pause {name}").click()
    await expect(way).to_contain_text("paused")
    await way.get_by_role("button", name=f"Go on with {name}").click()
    await expect(way).to_contain_text("left")
    await way.get_by_role("button", name=f"Give up {name}").click()
    await expect(way).to_have_count(0)
    assert not list(services.paths.models.iterdir())


async def test_what_cannot_be_used_is_a_sentence_in_the_sheet(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    (services.paths.models / "broken.gguf").write_bytes(b"<html>")
    tab = await opened(arrive)
    await expect(row(tab, "broken")).to_contain_text("is not a GGUF model (6 bytes)")
    await expect(row(tab, "broken").get_by_role("button", name="Use broken")).to_have_count(0)
    await tab.page.get_by_label("Path of a GGUF file or its folder").fill("/nowhere/m.gguf")
    await tab.page.get_by_role("button", name="Add by its path").click()
    await expect(tab.page.locator("#models_said")).to_contain_text("no model file at /nowhere")


DROP = """(dialog, [text, name]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), (each) => each.charCodeAt())], name));
    for (const type of ["dragover", "drop"]) {
        dialog.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true }));
    }
}"""


async def test_a_file_is_dropped_on_the_sheet_from_any_of_its_lists(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    content = write_tiny_model(services.paths.cache / "tiny.gguf").read_bytes()
    tab = await opened(arrive)
    sheet, said = tab.page.locator("#models"), tab.page.locator("#models_said")
    await tab.page.get_by_role("tab", name="To download").click()
    await tab.sees("Good for their size, and free for any use")
    await sheet.evaluate(DROP, [b64encode(content).decode(), "Mine.gguf"])
    await expect(row(tab, "Mine")).to_contain_text("copied")
    await expect(said).to_have_text("Mine.gguf is here now.")
    assert (services.paths.models / "Mine.gguf").read_bytes() == content

    for text, name, words in (
        (content, "Mine.gguf", "Mine.gguf is in the models folder already: remove it first."),
        (b"%PDF-1.7", "Thesis.gguf", "Thesis.gguf is not a GGUF model, whatever its name says"),
        (b"hello", "notes.txt", "notes.txt is no GGUF file"),
        (content[:-9], "Cut.gguf", "Cut.gguf is cut off or damaged"),
    ):
        await sheet.evaluate(DROP, [b64encode(text).decode(), name])
        await expect(said).to_contain_text(words)
    assert [each.name for each in services.paths.models.iterdir()] == ["Mine.gguf"]


async def test_a_copy_of_a_file_is_shown_on_its_way_and_can_be_given_up(
    services: FakeServices, arrive: Arrive, hub: FakeHub, tmp_path: Path
) -> None:
    large = write_tiny_model(tmp_path / "Large.gguf")
    with large.open("rb+") as file:
        file.truncate(200_000_000)
    tab = await opened(arrive)
    # Slow enough to press a button meanwhile.
    session = await tab.page.context.new_cdp_session(tab.page)
    slow = {
        "offline": False,
        "latency": 0,
        "downloadThroughput": -1,
        "uploadThroughput": 20_000_000,
    }
    await session.send("Network.emulateNetworkConditions", slow)
    async with tab.page.expect_file_chooser() as chooser:
        await tab.page.get_by_role("button", name="Choose a GGUF file").click()
    await (await chooser.value).set_files(large)
    way = tab.page.locator("#models_coming .download")
    await expect(way).to_contain_text("of 200 MB copied")
    # Another list, and back.
    await tab.page.get_by_role("tab", name="Connections").click()
    await tab.page.get_by_role("tab", name="On this computer").click()
    await way.get_by_role("button", name="Give up Large.gguf").click()
    await expect(way).to_have_count(0)

    async def is_empty() -> bool:
        return not list(services.paths.models.iterdir())

    await eventually(is_empty, "the end of what was given up")


async def test_what_is_chosen_for_one_model_is_kept_for_it_alone(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    tab = await opened(arrive)
    await row(tab, "starter").get_by_text("Details").click()
    before = await row(tab, "starter").locator(".verdict").inner_text()
    await row(tab, "starter").get_by_label("Context").select_option("2048")
    await expect(row(tab, "starter").locator(".verdict")).to_contain_text("2,048 tokens")
    assert await row(tab, "starter").locator(".verdict").inner_text() != before
    (own,) = services.settings.by_model.values()
    assert own == {"context_tokens": 2048}
    await row(tab, "starter").get_by_label("Context").select_option("")
    await expect(row(tab, "starter").locator(".verdict")).to_contain_text("8,192 tokens")
    await expect(row(tab, "starter")).not_to_contain_text("This model was made for")
    assert services.settings.by_model == {}
    await row(tab, "starter").get_by_label("Context").select_option("16384")
    await expect(row(tab, "starter")).to_contain_text("This model was made for 8,192 tokens")
    await row(tab, "starter").get_by_label("Context").select_option("")
    await expect(row(tab, "starter")).not_to_contain_text("This model was made for")


async def test_an_adapter_is_chosen_with_its_scale_for_the_model_in_use(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf")
    tab = await opened(arrive)
    names = tab.page.locator("#models_here li .name")
    await expect(names.get_by_text("pirate", exact=True)).to_be_visible()
    await expect(tab.page.get_by_role("button", name="Use pirate")).to_have_count(0)
    starter = row(tab, "starter")
    await starter.get_by_text("Details").click()
    await starter.get_by_label("pirate", exact=True).check()
    await starter.get_by_label("Scale of pirate").fill("7")
    load = starter.get_by_role("button", name="Load starter with these adapters")
    await load.click()
    await expect(tab.page.locator("#models_said")).to_contain_text("between -4 and 4, got 7")
    await starter.get_by_label("Scale of pirate").fill("0.8")
    await load.click()
    await expect(tab.page.locator("#models")).to_have_count(0)
    await tab.page.wait_for_load_state()
    await tab.settle()
    assert services.adapters == (Adapter(pirate, 0.8),)
    services.settings = services.settings.without_adapter(pirate)


async def test_the_sheet_fits_a_phone_and_is_left_with_escape(
    services: FakeServices, arrive: Arrive, hub: FakeHub
) -> None:
    tab = await arrive(viewport={"width": 390, "height": 800})
    await tab.page.get_by_role("button", name="Conversations", exact=True).click()
    await tab.page.locator("#open_models").click()
    for name in ("To download", "Connections", "On this computer"):
        await tab.page.get_by_role("tab", name=name).click()
        panel = tab.page.locator("#models [role=tabpanel]:visible")
        await panel.locator("> *").first.wait_for()
        assert await panel.evaluate("part => part.scrollWidth - part.clientWidth") <= 0
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    await tab.page.keyboard.press("Escape")
    await expect(tab.page.locator("#models")).to_be_hidden()
