"""The choices for the whole app, as the panel stores and explains them."""

from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.ui.machine import MachinePanel
from tests.app.test_memory import memory
from tests.fakes_chat import FakeServices


@pytest.fixture
def services(tmp_path: Path) -> Any:
    services = FakeServices(tmp_path)
    yield services
    services.database.close()


def panel(services: FakeServices) -> MachinePanel:
    with gr.Blocks(analytics_enabled=False):
        return MachinePanel(services)


async def test_a_chosen_context_is_kept(services: FakeServices) -> None:
    await panel(services).keep_for_loading(4096, "q8_0", 2.0, 256.0)
    kept = services.settings
    assert (kept.context_tokens, kept.kv_type, kept.threads) == (4096, "q8_0", 2)
    assert kept.max_batch_tokens == 256


async def test_automatic_and_empty_forget_the_choice(services: FakeServices) -> None:
    await panel(services).keep_for_loading(4096, "f16", 2.0, 256.0)
    await panel(services).keep_for_loading(0, "auto", None, None)
    kept = services.settings
    assert (kept.context_tokens, kept.threads, kept.max_batch_tokens) == (None, None, 512)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ((17, "auto", None, None), "A context of 17 tokens"),
        ((0, "q1", None, None), "kv_type must be one of"),
        ((0, "auto", 0.0, None), "threads must be at least 1"),
        ((0, "auto", None, 8.0), "max_batch_tokens must be at least 32"),
    ],
)
async def test_what_is_not_possible_changes_nothing(
    services: FakeServices, choices: tuple[Any, ...], words: str
) -> None:
    before = services.settings
    with pytest.raises(gr.Error, match=words):
        await panel(services).keep_for_loading(*choices)
    assert services.settings == before


async def test_a_budget_that_was_not_touched_stays_to_the_byte(services: FakeServices) -> None:
    before = services.settings.kv_disk_bytes
    await panel(services).limit(1.5, round(before / 1e9, 2))
    assert services.settings.kv_ram_bytes == 1_500_000_000
    assert services.settings.kv_disk_bytes == before
    await panel(services).limit(None, 0)
    assert (services.settings.kv_ram_bytes, services.settings.kv_disk_bytes) == (None, 0)


async def test_after_how_long_the_model_is_freed_is_kept(services: FakeServices) -> None:
    await panel(services).keep_rest(20.0)
    assert services.settings.unload_after_minutes == 20
    for minutes in (0, 10_001, float("nan")):
        with pytest.raises(gr.Error, match=f"after 1 to 10,000 minutes, not {minutes:g}"):
            await panel(services).keep_rest(minutes)
    assert services.settings.unload_after_minutes == 20
    await panel(services).keep_rest(None)
    assert services.settings.unload_after_minutes is None


async def test_a_context_beyond_the_models_own_says_what_it_is_good_for(
    services: FakeServices,
) -> None:
    services.memory = memory(trained_context=8192)
    made = panel(services)
    for tokens in (0, 4096, 8192):
        (note, *_) = await made.keep_for_loading(tokens, "auto", None, None)
        assert note["visible"] is False
    (note, *_) = await made.keep_for_loading(131_072, "auto", None, None)
    assert note["visible"] is True
    assert "made for 8,192 tokens, and no chat uses more" in note["value"]
