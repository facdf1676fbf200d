"""A title is what can be seen."""

from pathlib import Path

import gradio as gr
import pytest

from app.ui.sidebar import Header
from tests.fakes_chat import FakeServices


@pytest.mark.parametrize("title", ["", "  ", "\u200b\u2060", "\u00a0\ufeff \u3164"])
async def test_a_title_in_which_nothing_can_be_seen_brings_the_old_one_back(
    tmp_path: Path, title: str
) -> None:
    services = FakeServices(tmp_path)
    made = await services.conversations.create(title="Old")
    with gr.Blocks(analytics_enabled=False):
        header = Header(services)
    assert await header.rename(made.conversation_id, title) == "Old"
    assert await header.rename(made.conversation_id, f"New{title}") is not None
    assert (await services.conversations.get(made.conversation_id)).title.startswith("New")
    services.database.close()


async def test_a_title_left_by_pressing_delete_is_no_complaint(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    made = await services.conversations.create(title="Old")
    with gr.Blocks(analytics_enabled=False):
        header = Header(services)
    await services.conversations.delete(made.conversation_id)
    assert await header.rename(made.conversation_id, "Old") == gr.skip()
    services.database.close()
