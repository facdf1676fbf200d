"""Updates on the page: asked when the button is pressed, never before, and said word for word."""

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from app.updates.updates import Updates
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.fakes_machine import FakeMachine
from tests.fakes_releases import SUM, FakeReleases
from tests.visitor import Visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def releases(services: FakeServices) -> Iterator[FakeReleases]:
    services.machine = FakeMachine()
    before = services.updates
    with FakeReleases().serving() as releases:
        services.updates = Updates(services.library.connections, lambda: releases.url)
        yield releases
    services.updates = before
    services.paths.connections.unlink(missing_ok=True)


async def opened(arrive: Arrive, **options: object) -> Visitor:
    tab = await arrive(**options)
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.page.get_by_role("button", name="This machine", exact=True).click()
    await tab.sees("Memory is read at 1 GB/s")
    return tab


async def test_who_does_not_press_is_asked_about_nothing(
    services: FakeServices, releases: FakeReleases, arrive: Arrive
) -> None:
    before = services.library.connections.all()
    tab = await arrive()
    await tab.send("Good morning")
    await tab.sees_answer("Hello there.")
    tab = await opened(arrive)
    await tab.page.get_by_role("button", name="Measure again").click()
    await tab.sees("Memory is read at 2 GB/s")
    await tab.page.get_by_role("button", name="Self-test").click()
    await tab.sees("16 tokens in 0.3 s")
    await tab.reload()
    assert releases.asked == [] and services.library.connections.all() == before
    # And the button is what asks: else nothing above would prove anything.
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.page.get_by_role("button", name="This machine", exact=True).click()
    await tab.page.get_by_role("button", name="Check for updates").click()
    await tab.sees("Inglenook 99.0.0 of 2026-12-24 is newer")
    assert releases.asked == ["/inglenook/latest.json"]
    made = [each for each in services.library.connections.all() if each not in before]
    assert [each.why for each in made] == ["check for updates"]


async def test_it_says_what_the_command_says(
    services: FakeServices, releases: FakeReleases, arrive: Arrive
) -> None:
    tab = await opened(arrive)
    await tab.page.get_by_role("button", name="Check for updates").click()
    shown = tab.page.locator("#machine_newest")
    await expect(shown).to_contain_text(SUM)
    await expect(shown).to_have_role("status")
    said = (await services.updates.look()).sentence()
    assert (await shown.inner_text()).strip() == said


async def test_an_answer_with_markup_is_a_sentence_and_no_markup(
    releases: FakeReleases, arrive: Arrive
) -> None:
    tab = await opened(arrive)
    shown = tab.page.locator("#machine_newest")
    bodies = (
        b'{"version": "<img src=x onerror=alert(1)>", "date": "2026-12-24", "archives": []}',
        b'{"version": "1", "date": "2026-12-24", "archives": [{"name": "<b>x</b>", "bytes": 5}]}',
    )
    for number, body in enumerate(bodies, start=1):
        releases.body = body
        await tab.page.get_by_role("button", name="Check for updates").click()
        # Until then the sentence may be that of before.
        await until(lambda number=number: len(releases.asked) == number)
        await expect(shown).to_contain_text("cannot be understood")
        assert await shown.locator("img, b, a, script").count() == 0


async def test_what_goes_wrong_is_said_in_its_place_and_can_be_asked_again(
    services: FakeServices, releases: FakeReleases, arrive: Arrive
) -> None:
    services.updates = Updates(services.library.connections, lambda: "")
    tab = await opened(arrive)
    shown = tab.page.locator("#machine_newest")
    await tab.page.get_by_role("button", name="Check for updates").click()
    await expect(shown).to_contain_text("does not know where new versions are published")
    services.updates = Updates(services.library.connections, lambda: f"{releases.url}/*a*_<b>_")
    releases.status = 404
    await tab.page.get_by_role("button", name="Check for updates").click()
    await expect(shown).to_contain_text("/*a*_<b>_/latest.json (404)")
    services.updates = Updates(services.library.connections, lambda: releases.url)
    releases.status = 200
    await tab.page.get_by_role("button", name="Check for updates").click()
    await expect(shown).to_contain_text("is newer than this")


async def test_on_a_phone_the_sentence_is_not_wider_than_the_page(
    releases: FakeReleases, arrive: Arrive
) -> None:
    tab = await opened(arrive, viewport={"width": 390, "height": 800})
    await tab.page.get_by_role("button", name="Check for updates").click()
    await tab.sees("is newer than this")
    width = await tab.page.locator("#this_machine").evaluate("sheet => sheet.scrollWidth")
    assert width <= 390
