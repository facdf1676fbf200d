"""The settings in a real browser: fields, presets as files, examples and the chart."""

import asyncio
import itertools
import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from app.chat.example import Example
from app.presets.preset import Preset, read_preset_file
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.visitor import Visitor, eventually

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    return f"Preset number {next(numbers)}"


async def settings(arrive: Arrive, **options: object) -> Visitor:
    tab = await arrive(**options)
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.page.locator("#control_temperature").wait_for()
    return tab


async def begun(services: FakeServices, tab: Visitor) -> str:
    """The conversation that a first message makes."""
    before = {each.conversation_id for each in await services.conversations.list()}
    await tab.send("Hello")
    await tab.sees_answer("Hello there.")
    (made,) = {each.conversation_id for each in await services.conversations.list()} - before
    return made


async def sampling_becomes(services: FakeServices, made: str, wanted: dict[str, object]) -> None:
    async def is_so() -> bool:
        return dict((await services.conversations.get(made)).sampling) == wanted

    await eventually(is_so, f"{wanted} in the store")


async def open_group(tab: Visitor, title: str) -> Locator:
    group = tab.page.locator("#sampling details").filter(has_text=title).first
    await group.locator("summary").click()
    return group


async def test_the_colour_of_a_slider_ends_at_its_value_in_both_themes(
    services: FakeServices, arrive: Arrive
) -> None:
    for scheme in ("light", "dark"):
        tab = await settings(arrive, color_scheme=scheme)
        slider = tab.page.get_by_role("slider", name="Temperature, slider")
        number = tab.page.get_by_role("spinbutton", name="Temperature", exact=True)
        for value in ("0", "1", "2"):
            await number.fill(value)
            share = await slider.evaluate("bar => bar.style.getPropertyValue('--share')")
            low, high = [float(await slider.get_attribute(end) or "") for end in ("min", "max")]
            assert float(share) == (float(value) - low) / (high - low)
        # What is not filled is not the white of a browser's own groove.
        assert await slider.evaluate("bar => getComputedStyle(bar).appearance") == "none"


async def test_a_changed_field_counts_for_the_next_answer_and_can_be_reset(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await settings(arrive)
    await tab.page.get_by_role("spinbutton", name="Temperature", exact=True).fill("1.25")
    made = await begun(services, tab)
    await sampling_becomes(services, made, {"temperature": 1.25})
    await open_group(tab, "Against repetition")
    await tab.page.get_by_role("spinbutton", name="DRY", exact=True).fill("0.8")
    await tab.page.get_by_label("DRY breakers").fill("\\n\na\\\\b\n.")
    wanted = {"temperature": 1.25, "dry_multiplier": 0.8, "dry_breakers": ["\n", "a\\b", "."]}
    await sampling_becomes(services, made, wanted)
    await expect(tab.page.locator(".changed").filter(has_text="2 changed")).to_be_visible()
    await tab.page.get_by_role("button", name="Reset Against repetition").click()
    await sampling_becomes(services, made, {"temperature": 1.25})
    await tab.reload()
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await expect(tab.page.get_by_role("spinbutton", name="Temperature", exact=True)).to_have_value(
        "1.25"
    )


async def test_what_is_out_of_range_is_refused_beside_its_field(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await settings(arrive)
    made = await begun(services, tab)
    box = tab.page.get_by_role("spinbutton", name="Top-p", exact=True)
    await box.fill("1.5")
    fault = tab.page.locator("#fault_top_p")
    await expect(fault).to_have_text("top_p must be between 0 and 1, got 1.5.")
    await expect(box).to_have_attribute("aria-invalid", "true")
    assert dict((await services.conversations.get(made)).sampling) == {}
    await box.fill("0.5")
    await expect(fault).to_be_hidden()
    await sampling_becomes(services, made, {"top_p": 0.5})


async def test_the_order_is_chosen_by_name_and_sorted_by_keys(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await settings(arrive)
    made = await begun(services, tab)
    group = await open_group(tab, "Order of the steps")
    await group.get_by_role("combobox").select_option("transformers")
    await expect(group.locator("li").first).to_contain_text("Temperature")
    await group.get_by_role("button", name="Move Temperature down").focus()
    await tab.page.keyboard.press("Enter")
    await expect(group.locator("li").nth(1)).to_contain_text("Temperature")
    await expect(group.get_by_role("button", name="Move Temperature down")).to_be_focused()
    await group.get_by_role("checkbox", name="Top-a").uncheck()

    async def is_sorted() -> bool:
        stored = (await services.conversations.get(made)).sampling.get("sampler_order", [])
        return stored[:2] == ["top_k", "temperature"] and "top_a" not in stored

    await eventually(is_sorted, "an order of one's own")


async def test_a_preset_is_saved_exported_removed_and_imported(
    services: FakeServices, arrive: Arrive, name: str, tmp_path: Path
) -> None:
    tab = await settings(arrive)
    page = tab.page
    await page.get_by_role("spinbutton", name="Temperature", exact=True).fill("1.5")
    await page.locator("#system_prompt textarea").fill("Speak <b>softly</b>.")
    await page.get_by_role("button", name="Save…").click()
    await page.get_by_label("Name", exact=True).fill(name)
    await page.locator("#preset_parts").get_by_label("System prompt").check()
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_label("Preset", exact=True)).to_have_value(name)
    saved = services.presets.get(name)
    assert saved.system_prompt == "Speak <b>softly</b>." and saved.params.temperature == 1.5

    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export").click()
    download = await downloading.value
    assert download.suggested_filename == f"{name}.preset.json"
    file = tmp_path / "given.json"
    await download.save_as(file)
    assert read_preset_file(file.read_text(encoding="utf-8")) == saved

    await page.get_by_role("button", name="Remove…").click()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await tab.sees(f"{name} is removed.")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Import…").click()
    await (await choosing.value).set_files(file)
    await tab.sees("is among the presets now")
    assert services.presets.get(name) == saved


async def test_a_file_that_is_no_preset_is_refused_on_the_page(
    services: FakeServices, arrive: Arrive, tmp_path: Path
) -> None:
    tab = await settings(arrive)
    large, wrong = tmp_path / "large.json", tmp_path / "wrong.json"
    large.write_text(" " * 1_000_001)
    wrong.write_text(json.dumps({"inglenook_preset": 1, "name": "x", "sampling": {"heat": 1}}))
    for file, words in ((large, "1,000,001 bytes"), (wrong, "no sampling control called 'heat'")):
        async with tab.page.expect_file_chooser() as choosing:
            await tab.page.get_by_role("button", name="Import…").click()
        await (await choosing.value).set_files(file)
        await tab.sees(words)
    assert "x" not in [each.name for each in services.presets.saved()]


async def test_a_saved_preset_is_chosen_with_its_examples(
    services: FakeServices, arrive: Arrive, name: str
) -> None:
    examples = (Example("2+2?", "Vier <img src=x>."),)
    services.presets.save(Preset(name=name, sampling={"top_k": 7}, examples=examples))
    tab = await settings(arrive)
    await tab.page.get_by_label("Preset", exact=True).click()
    await tab.page.get_by_role("option", name=name, exact=True).click()
    await expect(tab.page.get_by_role("spinbutton", name="Top-k", exact=True)).to_have_value("7")
    made = await begun(services, tab)
    assert (await services.conversations.get(made)).examples == examples
    await tab.page.locator("#examples > button").click()
    answer = tab.page.get_by_label("Its answer, example 1")
    await expect(answer).to_have_value("Vier <img src=x>.")
    await tab.page.get_by_role("button", name="Add an example").click()
    await tab.page.get_by_label("A message, example 2").fill("3+3?")
    await tab.sees("An example needs a message and the answer to it.")
    await tab.page.get_by_label("Its answer, example 2").fill("Sechs.")

    async def are_stored() -> bool:
        stored = (await services.conversations.get(made)).examples
        return stored == (*examples, Example("3+3?", "Sechs."))

    await eventually(are_stored, "both examples in the store")
    await expect(tab.page.get_by_label("Preset", exact=True)).to_have_value("")


async def test_the_chart_is_drawn_while_it_is_open_and_follows_the_controls(
    services: FakeServices, arrive: Arrive
) -> None:
    tab = await settings(arrive)
    await tab.page.get_by_role("button", name="What these choices do").click()
    chart = tab.page.locator("table.prospect")
    await expect(chart.locator("tbody tr")).to_have_count(2)
    await expect(chart.locator("tbody tr").first).to_contain_text("␣<b>")
    await expect(chart).to_contain_text("65.0")
    await tab.page.get_by_role("spinbutton", name="Temperature", exact=True).fill("1")
    await expect(chart).to_contain_text("50.0")


async def test_everything_fits_a_phone(services: FakeServices, arrive: Arrive) -> None:
    tab = await settings(arrive, viewport={"width": 390, "height": 800})
    for title in ("Against repetition", "Order of the steps"):
        await open_group(tab, title)
    await tab.page.get_by_role("button", name="What these choices do").click()
    await tab.page.locator("table.prospect").wait_for()
    await asyncio.sleep(0.2)
    panel = tab.page.locator("#right .sidebar-content")
    wide = await panel.evaluate("part => part.scrollWidth - part.clientWidth")
    assert wide <= 0
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= 390
