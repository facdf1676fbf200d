"""What an NVIDIA card needs, on the page: nothing comes before its size was seen."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.async_api import expect

from app.cuda.cards import why_useless
from app.machine.gpu import Gpu
from engine.errors import InstallationFailed
from tests.app.ui.conftest import Arrive
from tests.fakes_chat import FakeServices
from tests.fakes_cuda import MADE, NOTHING, FakeCuda
from tests.fakes_machine import FakeMachine
from tests.visitor import Visitor

CARD = Gpu(name="Pixel <9>", maker="NVIDIA", memory_bytes=2**33, driver="580.1")
HELPS = replace(NOTHING, gpus=(CARD,))

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def cuda(services: FakeServices) -> Iterator[FakeCuda]:
    services.machine = FakeMachine()
    services.cuda.again(HELPS)
    yield services.cuda
    services.cuda.again()


async def opened(arrive: Arrive) -> Visitor:
    tab = await arrive()
    await tab.page.get_by_role("button", name="Settings", exact=True).click()
    await tab.page.get_by_role("button", name="This machine", exact=True).click()
    return tab


async def test_without_a_card_the_button_says_why_and_cannot_be_pressed(
    cuda: FakeCuda, arrive: Arrive
) -> None:
    cuda.again(replace(NOTHING, useless=why_useless([], "linux")))
    tab = await opened(arrive)
    await expect(tab.page.locator("#card_shown")).to_contain_text("no graphics card was found here")
    await expect(tab.page.locator("#card_look")).to_be_disabled()
    await expect(tab.page.locator("#card_install")).to_be_hidden()


async def test_sizes_come_first_then_the_installation_and_its_removal(
    cuda: FakeCuda, arrive: Arrive
) -> None:
    cuda.stands = replace(HELPS, not_yet="Answers would not come any faster.")
    tab = await opened(arrive)
    shown = tab.page.locator("#card_shown")
    await expect(shown).to_contain_text("Pixel <9>")
    await expect(shown).to_contain_text("would not come any faster")
    await expect(tab.page.locator("#card_install")).to_be_hidden()
    await tab.page.locator("#card_look").click()
    await expect(shown).to_contain_text("It fetches 1 file with 2 GB")
    await expect(shown).to_contain_text("90 GB are free")
    await tab.page.get_by_role("button", name="Install, 2 GB").click()
    await expect(shown).to_contain_text("Downloading torch-2.99.0.whl")
    await expect(tab.page.locator("#card_look")).to_be_hidden()
    cuda.gate.set()
    await expect(shown).to_contain_text("Torch 2.99.0 is installed")
    await expect(shown).to_contain_text("Start Inglenook again to use it.")
    await tab.page.locator("#card_remove").click()
    await expect(shown).to_contain_text("(5 GB)?")
    await tab.page.locator("#card_keep").click()
    assert "remove" not in cuda.done
    await tab.page.locator("#card_remove").click()
    await tab.page.locator("#card_really").click()
    await expect(tab.page.locator("#card_look")).to_be_visible()
    assert cuda.done == ["look  False", "install  False", "remove"]


async def test_it_goes_on_without_its_tab_and_can_be_stopped_in_another(
    cuda: FakeCuda, arrive: Arrive
) -> None:
    first = await opened(arrive)
    await first.page.locator("#card_look").click()
    await first.page.locator("#card_install").click()
    await expect(first.page.locator("#card_shown")).to_contain_text("Downloading torch")
    await first.page.close()
    second = await opened(arrive)
    await expect(second.page.locator("#card_shown")).to_contain_text("Downloading torch")
    assert cuda.is_working
    await second.page.locator("#card_stop").click()
    await expect(second.page.locator("#card_install")).to_be_visible()
    assert not cuda.is_working and cuda.stands.made is None


async def test_what_went_wrong_is_said_and_can_be_tried_again(
    cuda: FakeCuda, arrive: Arrive
) -> None:
    cuda.error = InstallationFailed("pip ended with 1: see that the network is there.")
    tab = await opened(arrive)
    await tab.page.locator("#card_look").click()
    await expect(tab.page.locator("#card_shown")).to_contain_text("see that the network is there")
    cuda.error = None
    await tab.page.locator("#card_look").click()
    await expect(tab.page.locator("#card_install")).to_be_visible()


async def test_one_of_another_version_can_be_made_anew(cuda: FakeCuda, arrive: Arrive) -> None:
    cuda.again(replace(HELPS, made=MADE, obstacle="It belongs to Inglenook 0.0.9."))
    tab = await opened(arrive)
    await expect(tab.page.locator("#card_shown")).to_contain_text("belongs to Inglenook 0.0.9")
    await expect(tab.page.locator("#card_look")).to_be_visible()
    await expect(tab.page.locator("#card_remove")).to_be_visible()
