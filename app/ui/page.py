"""The page: where its parts stand, and which event calls which handler."""

from pathlib import Path
from typing import Any

import gradio as gr

from app.chat.message import Conversation
from app.ui.boundary import told
from app.ui.chat import WINDOW, Chat
from app.ui.room import Services
from app.ui.settings import SettingsPanel
from app.ui.sidebar import Header, Sidebar
from engine.errors import NotFound

STATIC = Path(__file__).parent / "static"

QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# Gradio's default of one run at a time would make a second tab wait for the first.
ACTING = QUIET | {"concurrency_limit": None}
FOLLOWING = ACTING | {"trigger_mode": "multiple"}
WHILE_TYPING = ACTING | {"trigger_mode": "always_last"}
# Past the queue: cannot be kept waiting. Its errors are not shown, so nothing that can fail.
AT_ONCE = QUIET | {"queue": False}


def head() -> str:
    """Style and script of the page. In the head: handlers compiled from strings are not allowed
    by the security policy, and a style given as `css` is doubled by Gradio."""
    style = (STATIC / "page.css").read_text(encoding="utf-8")
    script = (STATIC / "page.js").read_text(encoding="utf-8")
    return f"<style>{style}</style><script>{script}</script>"


def build(services: Services) -> gr.Blocks:
    """The whole page. Per tab: which conversation is open, how much of it, what was deleted."""
    blocks = gr.Blocks(
        title="Inglenook", fill_height=True, fill_width=True, analytics_enabled=False
    )
    with blocks:
        # The browser may forge this; it is only an id, and it is looked up again.
        last = gr.BrowserState(None, storage_key="inglenook_last", secret="inglenook")
        conversation = gr.State(None)
        num_shown = gr.State(WINDOW)
        deleted = gr.State(None)
        with gr.Sidebar(width=280, elem_id="left"):
            sidebar = Sidebar(services)
        with gr.Sidebar(width=320, position="right", open=False, elem_id="right"):
            settings = SettingsPanel(services)
        with gr.Column(elem_id="middle", scale=1):
            header = Header(services)
            chat = Chat(services, settings)

        @told
        async def opened(conversation_id: str | None) -> tuple[Any, ...]:
            found = await _find(services, conversation_id)
            found_id = found.conversation_id if found else None
            return found_id, WINDOW, *header.show(found), *settings.show(found)

        @told
        async def refreshed(query: str, conversation_id: str | None) -> tuple[Any, ...]:
            found = await _find(services, conversation_id)
            listed = await sidebar.refresh(query, conversation_id)
            return *listed, *header.show(found), conversation_id

        opening = [conversation, num_shown, header.row, header.title, *settings.outputs]
        refreshing = [sidebar.list, sidebar.nothing, header.row, header.title, last]

        def follow_after(event: Any) -> None:
            event.success(chat.follow, [conversation, num_shown], chat.outputs, **FOLLOWING)
            event.success(refreshed, [sidebar.search, conversation], refreshing, **ACTING)

        def open_after(event: Any) -> None:
            follow_after(event.success(opened, conversation, opening, **ACTING))

        blocks.unload(chat.leave)
        follow_after(blocks.load(opened, last, opening, **AT_ONCE))

        follow_after(sidebar.list.input(opened, sidebar.list, opening, **ACTING))
        open_after(
            sidebar.new.click(lambda: (None, None), None, [conversation, sidebar.list], **ACTING)
        )
        sidebar.search.change(refreshed, [sidebar.search, conversation], refreshing, **WHILE_TYPING)

        for event in (header.title.submit, header.title.blur):
            event(header.rename, [conversation, header.title], header.title, **ACTING).success(
                refreshed, [sidebar.search, conversation], refreshing, **ACTING
            )
        open_after(
            header.delete.click(
                header.delete_conversation,
                conversation,
                [conversation, deleted, header.undo_bar, header.deleted],
                **ACTING,
            )
        )
        open_after(
            header.undo.click(
                header.undo_delete, deleted, [conversation, deleted, header.undo_bar], **ACTING
            )
        )
        header.dismiss.click(lambda: gr.update(visible=False), None, header.undo_bar, **ACTING)

        sent = [chat.composer, conversation]
        follow_after(
            chat.composer.submit(
                chat.send, [chat.composer, conversation, *settings.choices], sent, **ACTING
            )
        )
        follow_after(
            chat.chatbot.example_select(
                chat.send_example, [conversation, *settings.choices], sent, **ACTING
            )
        )
        chat.composer.stop(chat.stop, conversation, None, **AT_ONCE)
        follow_after(chat.regenerate.click(chat.regenerate_answer, conversation, None, **ACTING))
        follow_after(
            chat.earlier.click(lambda shown: shown + WINDOW, num_shown, num_shown, **ACTING)
        )

        saving = [conversation, *settings.choices]
        settings.system_prompt.blur(settings.save, saving, settings.preset, **ACTING)
        for control in settings.sampling:
            control.input(settings.save, saving, settings.preset, **WHILE_TYPING)
        settings.preset.input(
            settings.take_preset,
            [settings.preset, settings.max_tokens, settings.seed],
            settings.sampling,
            **ACTING,
        ).success(settings.save, saving, settings.preset, **ACTING)
    return blocks


async def _find(services: Services, conversation_id: str | None) -> Conversation | None:
    if conversation_id is None:
        return None
    try:
        return await services.conversations.get(conversation_id)
    except NotFound:
        return None
