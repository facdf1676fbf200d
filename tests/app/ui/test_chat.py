"""What the first page says about the model, and what is told of a running answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from app.ui.chat import Chat, welcome
from app.ui.settings import SettingsPanel
from tests.fakes_chat import FakeServices, Script


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


async def test_every_update_of_a_running_answer_says_that_it_can_be_stopped(
    services: FakeServices,
) -> None:
    """The first may come before the last word of an older following, which takes Stop away."""
    with gr.Blocks():
        chat = Chat(cast(Any, services), SettingsPanel(cast(Any, services)))
    services.jobs.script = Script(pieces=["One", " two", " three"], pace_s=0.2)
    conversation_id = (await services.conversations.create()).conversation_id
    await services.jobs.send(conversation_id, "Count")
    tab = cast(gr.Request, SimpleNamespace(session_hash="tab"))
    told = [
        update[chat.composer]["stop_btn"] async for update in chat.follow(conversation_id, 50, tab)
    ]
    assert len(told) > 2
    assert told == [True] * (len(told) - 1) + [False]
