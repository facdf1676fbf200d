"""How sure the model was, in a real browser: by keys, by touch, and going on from another token."""

import itertools

import pytest
from playwright.async_api import Locator, expect

from app.chat.likelihoods import Alternative, Chosen, Likelihoods
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
numbers = itertools.count(1)
TOKENS = (
    Chosen("Good", -0.01, (Alternative(71, "Good", -0.01), Alternative(72, "<b>Hi", -4.7))),
    Chosen(" day", -1.0, (Alternative(73, " day", -1.0), Alternative(74, " night", -1.2))),
    Chosen("\n", -0.2, (Alternative(10, "\n", -0.2), Alternative(274, "", -2.0))),
    Chosen("<i>", -6.0, (Alternative(11, "!", -0.1),)),
)


@pytest.fixture
def title() -> str:
    return f"Sure number {next(numbers)}"


async def told(services: FakeServices, title: str, model: str) -> str:
    """The id of an answer with likelihoods."""
    made = await services.conversations.create(title=title)
    await services.tell(
        made.conversation_id,
        ["Hello", "Good day\n<i>"],
        likelihoods=Likelihoods.of(TOKENS),
        token_ids=(71, 73, 10, 75),
        model=model,
    )
    return (await services.conversations.messages(made.conversation_id))[-1].message_id


def sheet(tab: Visitor) -> Locator:
    return tab.page.get_by_role("dialog", name="How sure the model was")


async def opened(services: FakeServices, arrive: Arrive, title: str, **options: object) -> Visitor:
    tab = await arrive(**options)
    if options:
        await tab.page.get_by_role("button", name="Conversations", exact=True).click()
    await tab.open(title)
    await tab.page.get_by_role("link", name="How sure it was").click()
    await expect(sheet(tab)).to_be_visible()
    return tab


async def test_every_token_tells_its_chance_and_nothing_of_it_becomes_markup(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, services.model.name)
    tab = await opened(services, arrive, title)
    tokens = sheet(tab).locator("#sure_text .token")
    assert await tokens.all_text_contents() == ["Good", " day", "⏎\n", "<i>"]
    levels = [(await each.get_attribute("class") or "").split()[1] for each in await tokens.all()]
    assert levels == ["sure", "possible", "likely", "rare"]
    await expect(tab.page.get_by_role("button", name="day, 36.8 %")).to_be_visible()
    await tokens.first.click()
    await expect(sheet(tab).locator("#sure_choices li")).to_have_count(2)
    await expect(sheet(tab).locator("#sure_choices b")).to_have_count(0)
    await tokens.nth(3).click()
    # It was not among the likeliest, and stands with them all the same.
    await expect(sheet(tab).locator("#sure_choices li.chosen")).to_contain_text("0.3 %")


async def test_keys_go_through_the_tokens_and_on_from_another_one(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    answer_id = await told(services, title, services.model.name)
    tab = await opened(services, arrive, title)
    keyboard = tab.page.keyboard
    await expect(sheet(tab).locator("#sure_text .token").first).to_be_focused()
    await keyboard.press("ArrowRight")
    await keyboard.press("Enter")
    await expect(sheet(tab).locator("#sure_choices")).to_contain_text("␣night")
    await keyboard.press("Tab")
    await expect(
        tab.page.get_by_role("button", name="Continue from ␣night, 30.1 %")
    ).to_be_focused()
    await keyboard.press("Enter")
    await expect(sheet(tab)).to_be_hidden()
    await tab.sees_answer("Hello there.")
    assert services.jobs.continued[-1] == (answer_id, 1, 74)
    await expect(tab.page.locator("#version_words")).to_have_text("Answer 2 of 2")
    await tab.page.get_by_role("button", name="The answer before").click()
    await tab.sees_answer("Good day")
    await expect(tab.page.locator("#version_words")).to_have_text("Answer 1 of 2")
    await tab.page.get_by_role("button", name="The answer after").click()
    await tab.sees_answer("Hello there.")


async def test_escape_closes_it_and_stops_nothing_and_the_end_is_no_way_on(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, services.model.name)
    tab = await opened(services, arrive, title)
    await sheet(tab).locator("#sure_text .token").nth(2).click()
    await expect(sheet(tab)).to_contain_text("the end, or another mark")
    await expect(sheet(tab).get_by_role("button", name="Continue from")).to_have_count(0)
    await tab.page.keyboard.press("Escape")
    await expect(sheet(tab)).to_be_hidden()
    await expect(tab.page.get_by_role("link", name="How sure it was")).to_be_focused()


async def test_another_models_answer_can_be_seen_and_not_gone_on_with(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    await told(services, title, "another-model")
    tab = await opened(services, arrive, title)
    await sheet(tab).locator("#sure_text .token").nth(1).click()
    await expect(sheet(tab)).to_contain_text("written by another-model")
    await expect(sheet(tab).get_by_role("button", name="Continue from")).to_have_count(0)


async def test_it_fits_a_phone(services: FakeServices, arrive: Arrive, title: str) -> None:
    await told(services, title, services.model.name)
    tab = await opened(services, arrive, title, viewport={"width": 390, "height": 800})
    await sheet(tab).locator("#sure_text .token").nth(1).click()
    box = await sheet(tab).bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert await sheet(tab).evaluate("part => part.scrollWidth - part.clientWidth") <= 0


async def test_an_answer_without_likelihoods_has_no_link(
    services: FakeServices, arrive: Arrive, title: str
) -> None:
    made = await services.conversations.create(title=title)
    await services.tell(made.conversation_id, ["Hello", "Good day"])
    tab = await arrive()
    await tab.open(title)
    await expect(tab.page.get_by_role("link", name="What the model saw")).to_be_visible()
    await expect(tab.page.get_by_role("link", name="How sure it was")).to_have_count(0)
