"""This machine on the page: measured once, again on request, and copied as a report."""

from dataclasses import replace
from html import unescape

import pytest
from playwright.async_api import expect

from app.machine.check import Check
from app.ui.this_machine import sheet
from engine.errors import UsageError
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.fakes_machine import FakeMachine, some_findings
from tests.visitor import Visitor


def test_what_was_found_is_shown_and_nothing_of_it_is_html() -> None:
    html = sheet(some_findings(), None)
    assert "<b>pieces" not in html and "pieces" in html
    assert html.count("<tr") == 1 + 2 + len(some_findings().predictions)
    assert "As it was on 2026-11-30 at 17:05" in unescape(html)
    assert html.count("<img") == 2 and html.count('alt="Memory') == 2


def test_what_is_not_known_leaves_its_part_out() -> None:
    bare = replace(some_findings(), kv=None, costs=None, roofline=None, plan=None)
    html = sheet(bare, [Check("write", True, "well")])
    assert "<img" not in html and "What it costs" not in html and "Self-test" in html


@pytest.fixture
def machine(services: FakeServices) -> FakeMachine:
    services.machine = FakeMachine()
    # The page was built with these services, and asks them each time.
    return services.machine


async def opened(arrive: Arrive, **options: object) -> Visitor:
    tab = await arrive(**options)
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.page.get_by_role("button", name="This machine", exact=True).click()
    return tab


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_it_is_measured_once_and_again_when_that_is_asked_for(
    machine: FakeMachine, arrive: Arrive
) -> None:
    tab = await opened(arrive)
    dialog = tab.page.get_by_role("dialog", name="This machine")
    await expect(dialog).to_contain_text("Memory is read at 1 GB/s")
    await expect(tab.page.locator("#machine_close")).to_be_focused()
    await tab.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(tab.page.locator("#machine_open")).to_be_focused()
    await tab.page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("Memory is read at 1 GB/s")
    assert machine.num_looks == 1
    await dialog.get_by_role("button", name="Measure again").click()
    await expect(dialog).to_contain_text("Memory is read at 2 GB/s")
    await dialog.get_by_role("button", name="Self-test").click()
    await expect(dialog).to_contain_text("16 tokens in 0.3 s")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_the_picture_has_the_colours_of_the_page_and_its_figures_in_words(
    machine: FakeMachine, arrive: Arrive
) -> None:
    tab = await opened(arrive, color_scheme="dark")
    picture = tab.page.locator("#this_machine img:visible")
    await expect(picture).to_have_count(1)
    await expect(picture).to_have_class("dark")
    assert "operations per byte" in (await picture.get_attribute("alt") or "")
    assert await picture.evaluate("image => image.naturalWidth") > 0


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_the_report_is_copied(machine: FakeMachine, arrive: Arrive) -> None:
    tab = await opened(arrive, permissions=["clipboard-read", "clipboard-write"])
    await tab.sees("Memory is read at 1 GB/s")
    await tab.page.get_by_role("button", name="Copy report").click()
    await expect(tab.page.get_by_role("button", name="Copied")).to_be_visible()
    assert await tab.page.evaluate("navigator.clipboard.readText()") == "report 1"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_on_a_phone_nothing_is_wider_than_the_page(
    machine: FakeMachine, arrive: Arrive
) -> None:
    tab = await opened(arrive, viewport={"width": 390, "height": 800})
    await tab.sees("Memory is read at 1 GB/s")
    width = await tab.page.locator("#this_machine").evaluate("sheet => sheet.scrollWidth")
    assert width <= 390


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_look_that_fails_is_told_and_does_not_go_on_for_ever(
    machine: FakeMachine, arrive: Arrive
) -> None:
    machine.error = UsageError("This machine is being measured already: wait for some seconds.")
    tab = await opened(arrive)
    await expect(tab.page.locator("#told")).to_contain_text("being measured already")
    await expect(tab.page.locator("#machine_doing")).not_to_contain_text("Looking")
    machine.error = None
    await tab.page.get_by_role("button", name="Measure again").click()
    await tab.sees("Memory is read at 1 GB/s")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_that_is_scrolled_stands_beside_or_under_close(
    machine: FakeMachine, arrive: Arrive
) -> None:
    tab = await opened(arrive, viewport={"width": 1000, "height": 400})
    picture = tab.page.locator("#this_machine .picture")
    await picture.evaluate("part => part.scrollIntoView({ block: 'start' })")
    close = tab.page.locator("#machine_close")
    over = await close.evaluate(
        """button => {
            const { left, top, width, height } = button.getBoundingClientRect();
            const all = document.elementsFromPoint(left + width / 2, top + height / 2);
            const bar = all.find((part) => part.id === "machine_heading");
            return {
                isOnTop: button.contains(all[0]),
                bar: all.indexOf(bar),
                picture: all.findIndex((part) => part.closest(".picture")),
                ends: bar.getBoundingClientRect().bottom - top - height,
            };
        }"""
    )
    assert over["isOnTop"] and over["ends"] >= 0
    assert 0 < over["bar"] < over["picture"]
