"""A conversation that goes on in another tab goes on in this one, too.

The page's script hears of turns when it asks whether the app is there, and says so in `told`; only
then the tab is compared with its conversation, and only a stale one follows it.

    another tab: a message --> Conversations.num_turns --> /_app/state --> told --> look --> follow
"""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import gradio as gr

from app.ui.chat import Chat
from app.ui.room import Services
from engine.errors import InglenookError

Updates = dict[Any, Any]


class Abreast:
    """Widgets without a look, and handlers. Built inside the page's Blocks.

    `mark` is the conversation that a tab follows or followed, and its last message then; `stale`
    becomes what was told when the tab has to follow again.
    """

    def __init__(self, services: Services, chat: Chat) -> None:
        self._services = services
        self._chat = chat
        self.told = gr.Textbox(elem_id="turns_told", label="Turns so far")
        self.mark = gr.State(None)
        # Not a State, whose change is only heard after what went through the queue.
        self.stale = gr.Textbox("0", elem_id="turns_stale", label="Turns to be shown")
        self.outputs = [*chat.outputs, self.mark]

    async def follow(
        self, conversation_id: str | None, num_shown: int, request: gr.Request
    ) -> AsyncGenerator[Updates, None]:
        """As that of the chat; remembers what is shown."""
        # Read before: what comes meanwhile is shown twice rather than never.
        more: Updates = {self.mark: await self._newest(conversation_id)}
        following = self._chat.follow(conversation_id, num_shown, request)
        async with contextlib.aclosing(following):
            async for updates in following:
                yield updates | more
                more = {}

    async def look(self, told: str, conversation_id: str | None, mark: object) -> Any:
        """The next value of `stale`, or none where the tab shows the newest message."""
        newest = await self._newest(conversation_id)
        return gr.skip() if newest is None or newest == mark else told

    async def _newest(self, conversation_id: str | None) -> tuple[str, str] | None:
        """None where nothing was said, or it is gone."""
        if conversation_id is None:
            return None
        try:
            messages = await self._services.conversations.messages(conversation_id, limit=1)
        except InglenookError:
            return None
        return (conversation_id, messages[0].message_id) if messages else None
