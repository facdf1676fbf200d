"""A title is what can be seen, and what a search found stands below it."""

from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from app.chat.answer_form import AnswerForm, MadeIn
from app.chat.example import Example
from app.ui.formed import _formed
from app.ui.render import rows
from app.ui.sidebar import Header, Sidebar
from engine.guided.grammar import GrammarKind
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


async def test_what_was_found_stands_below_a_title_that_does_not_say_it(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    named = await services.conversations.create(title="A lighthouse")
    other = await services.conversations.create(title="Walks")
    await services.tell(other.conversation_id, ["To the lighthouse?", "By boat."])
    with gr.Blocks(analytics_enabled=False):
        sidebar = Sidebar(services)
    listed, _ = await sidebar.refresh("lighthouse", None)
    assert listed["choices"] == [
        ("A lighthouse", named.conversation_id),
        ("Walks\nTo the lighthouse?", other.conversation_id),
    ]
    services.database.close()


async def test_a_title_left_by_pressing_delete_is_no_complaint(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    made = await services.conversations.create(title="Old")
    with gr.Blocks(analytics_enabled=False):
        header = Header(services)
    await services.conversations.delete(made.conversation_id)
    assert await header.rename(made.conversation_id, "Old") == gr.skip()
    services.database.close()


async def test_a_temporary_chat_begins_as_others_do(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    examples = (Example("2+2?", "Vier."),)
    services.settings = replace(services.settings, default_examples=examples)
    with gr.Blocks(analytics_enabled=False):
        sidebar = Sidebar(services)
    conversation_id, _ = await sidebar.begin_temporary()
    made = await services.conversations.get(conversation_id)
    assert (made.examples, made.system_prompt) == (examples, "You are a helpful assistant.")
    services.conversations.close()
    services.database.close()


async def test_nothing_of_a_deleted_answer_is_kept(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    made = await services.conversations.create(title="Secret", temporary=True)
    made_in = MadeIn(AnswerForm.of_own(GrammarKind.JSON_SCHEMA, "{}"))
    await services.tell(made.conversation_id, ["Q", '{"a": "secret"}'], made_in=made_in)
    assert "secret" in str(rows(await services.conversations.messages(made.conversation_id)))
    assert _formed.cache_info().currsize
    with gr.Blocks(analytics_enabled=False):
        header = Header(services)
    await header.delete_conversation(made.conversation_id)
    assert _formed.cache_info().currsize == 0
    services.database.close()
