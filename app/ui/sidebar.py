"""The list of conversations: search, open, rename, delete and undo."""

from typing import Any

import gradio as gr

from app.chat.belonging import is_temporary
from app.chat.message import Conversation
from app.history.search import Hit, search
from app.ui.boundary import told
from app.ui.formed import forget_formed
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.errors import NotFound

NUM_LISTED = 200
BLANKS = "\u034f\u115f\u1160\u2800\u3164\uffa0"
"""Characters that count as printable and show nothing."""

TEMPORARY_NOTE = "Temporary"
TEMPORARY_WORDS = "Temporary chat: it is kept in memory only, and is gone when the app closes."
UNNAMED = "New conversation"


class Sidebar:
    """Widgets and handlers of the list. Built inside the page's Blocks."""

    def __init__(self, services: Services) -> None:
        self.services = services
        gr.Markdown("# Inglenook", elem_id="brand")
        self.new = gr.Button("New chat", variant="primary", elem_id="new_chat")
        self.temporary = gr.Button("New temporary chat", size="sm", elem_id="new_temporary")
        self.search = gr.Textbox(
            elem_id="search",
            label="Search conversations",
            show_label=False,
            container=False,
            placeholder="Search",
        )
        # Shown with what was stored, when the tab holds its conversation.
        self.list = gr.Radio(
            [],
            visible=False,
            elem_id="conversations",
            label="Conversations",
            show_label=False,
            container=False,
        )
        self.nothing = gr.Markdown("", visible=False, elem_id="nothing_found")
        # Opened by the page's script, as the sheets are its work.
        gr.Button("Documents", size="sm", elem_id="open_documents")
        gr.Button("Models", size="sm", elem_id="open_models")
        gr.Button("Light or dark", size="sm", elem_id="theme_toggle")
        gr.Button("Quit Inglenook", size="sm", elem_id="quit_app")

    @told
    async def refresh(self, query: str, conversation_id: str | None) -> tuple[Any, Any]:
        """The list as it is now, with the open conversation marked."""
        choices = await (self._found(query) if query.strip() else self._newest())
        known = {value for _, value in choices}
        shown = conversation_id if conversation_id in known else None
        is_empty = not choices
        words = "Nothing found." if query.strip() else "Your conversations will be listed here."
        return (
            gr.update(choices=choices, value=shown, visible=not is_empty),
            gr.update(value=words, visible=is_empty),
        )

    async def _newest(self) -> list[tuple[str, str]]:
        conversations = self.services.conversations
        temporary = [
            (f"{title_of(one)}\n{TEMPORARY_NOTE}", one.conversation_id)
            for one in await conversations.list_temporary()
        ]
        listed = await conversations.list(limit=NUM_LISTED)
        return [*temporary, *((title_of(one), one.conversation_id) for one in listed)]

    @told
    async def begin_temporary(self) -> tuple[Any, Any]:
        """A conversation that is in memory only. Gives its id, and nothing for the list."""
        settings = self.services.settings
        made = await self.services.conversations.create(
            system_prompt=settings.default_system_prompt,
            temporary=True,
            examples=settings.default_examples,
        )
        return made.conversation_id, None

    async def _found(self, query: str) -> list[tuple[str, str]]:
        hits = await search(self.services.database, query)
        return [(_label(hit), hit.conversation.conversation_id) for hit in hits]


class Header:
    """The title of the open conversation, and what can be done with the whole of it."""

    def __init__(self, services: Services) -> None:
        self.services = services
        with gr.Row(elem_id="header", visible=False) as self.row:
            self.title = gr.Textbox(
                elem_id="title",
                label="Title of this conversation",
                show_label=False,
                container=False,
                max_lines=1,
                max_length=200,
            )
            self.delete = gr.Button("Delete", size="sm", elem_id="delete", scale=0)
        self.temporary = gr.Markdown(TEMPORARY_WORDS, visible=False, elem_id="temporary_note")
        self.outputs = [self.row, self.title, self.temporary]
        with gr.Row(elem_id="undo_bar", visible=False) as self.undo_bar:
            self.deleted = gr.Markdown("")
            self.undo = gr.Button("Undo", size="sm", elem_id="undo", scale=0)
            self.dismiss = gr.Button("Dismiss", size="sm", elem_id="dismiss", scale=0)

    def show(self, conversation: Conversation | None) -> tuple[Any, Any, Any]:
        """Values for `outputs`."""
        if conversation is None:
            return gr.update(visible=False), "", gr.update(visible=False)
        temporary = is_temporary(conversation.conversation_id)
        return gr.update(visible=True), title_of(conversation), gr.update(visible=temporary)

    @told
    async def rename(self, conversation_id: str | None, title: str) -> Any:
        """Store the title; one in which nothing can be seen brings the old one back."""
        if conversation_id is None:
            return gr.skip()
        try:
            conversation = await self.services.conversations.get(conversation_id)
        except NotFound:
            # Its Delete was pressed while the title had the focus, which it then lost.
            return gr.skip()
        title = " ".join(title.split())
        if not _is_visible(title) or title == title_of(conversation):
            return title_of(conversation)
        await self.services.conversations.rename(conversation_id, title)
        return title

    @told
    async def delete_conversation(self, conversation_id: str) -> tuple[Any, Any, Any, Any]:
        """Delete and offer to undo it. A running answer is stopped first."""
        conversation = await self.services.conversations.get(conversation_id)
        self.services.jobs.stop(conversation_id)
        await self.services.conversations.delete(conversation_id)
        forget_formed()
        told = f"Deleted “{show_verbatim(title_of(conversation))}”"
        return None, conversation_id, gr.update(visible=True), told

    @told
    async def undo_delete(self, deleted_id: str | None) -> tuple[Any, Any, Any]:
        if deleted_id is None:
            return gr.skip(), None, gr.update(visible=False)
        await self.services.conversations.restore(deleted_id)
        return deleted_id, None, gr.update(visible=False)


def _label(hit: Hit) -> str:
    """The title, and below it the words that were found where they are not its own."""
    title = title_of(hit.conversation)
    return title if hit.message_id is None else f"{title}\n{hit.snippet}"


def title_of(conversation: Conversation) -> str:
    return conversation.title or UNNAMED


def _is_visible(title: str) -> bool:
    return any(char.isprintable() and not char.isspace() and char not in BLANKS for char in title)
