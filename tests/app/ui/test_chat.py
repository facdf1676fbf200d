"""What the first page says about the model, and what following a conversation leaves behind."""

from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from app.ui.chat import Chat, welcome
from app.ui.settings import SettingsPanel
from tests.fakes_chat import FakeServices


@pytest.fixture
def services(tmp_path: Path) -> FakeServices:
    return FakeServices(tmp_path)


def test_a_model_that_needs_no_word_gets_none(services: FakeServices) -> None:
    assert welcome(services).count("<p>") == 2


def test_a_notice_about_the_model_stands_on_the_first_page(services: FakeServices) -> None:
    services.model_notice = "This model brings no <template>."
    text = welcome(services)
    assert "no &#" in text or "no &lt;template" in text
    assert "<template>" not in text


def test_a_model_that_cannot_be_used_is_said_instead(services: FakeServices) -> None:
    services.model_error = "The file is cut off: bring it again."
    text = welcome(services)
    assert "cut off" in text and "You are talking to" not in text


async def test_what_is_followed_last_repeats_nothing_at_its_end(services: FakeServices) -> None:
    """Gradio sends the last update again when a handler ends; of a page that has just been opened
    it took the Stop button away from who had sent a message meanwhile."""
    with gr.Blocks(analytics_enabled=False):
        chat = Chat(services, SettingsPanel(services))
    tab = SimpleNamespace(session_hash="tab")
    shown, last = [each async for each in chat.follow(None, 40, tab)]
    assert shown[chat.composer]["submit_btn"] is True
    assert last == dict.fromkeys(chat.outputs, gr.skip())
    following = chat.follow(None, 40, tab)
    assert await anext(following) != last
    chat.tabs.enter("tab")
    assert [each async for each in following] == [last]
