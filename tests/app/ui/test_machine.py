"""What holds for the whole app."""

from pathlib import Path

import gradio as gr
import pytest

from app.ui.machine import MachinePanel
from tests.fakes_chat import FakeServices


@pytest.fixture
def services(tmp_path: Path) -> FakeServices:
    return FakeServices(tmp_path)


def panel(services: FakeServices) -> MachinePanel:
    with gr.Blocks(analytics_enabled=False):
        return MachinePanel(services)


async def test_a_chosen_context_is_kept(services: FakeServices) -> None:
    await panel(services).keep_context(16384)
    assert services.settings.context_tokens == 16384
    assert panel(services).context.value == 16384


async def test_automatic_forgets_the_choice(services: FakeServices) -> None:
    await panel(services).keep_context(16384)
    await panel(services).keep_context(0)
    assert services.settings.context_tokens is None
    assert panel(services).context.value == 0


async def test_a_context_that_is_not_on_offer_changes_nothing(services: FakeServices) -> None:
    with pytest.raises(gr.Error, match="A context of 17 tokens"):
        await panel(services).keep_context(17)
    assert services.settings.context_tokens is None
