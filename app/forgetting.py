"""What was deleted leaves the engine as well: the KV of a conversation is made of its words."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from app.chat.chat_model import ChatModel
from engine.errors import InglenookError

logger = logging.getLogger(__name__)


class Forgetting:
    """Owned by the event loop.

    `living` names everybody whose KV may stay, `leave` ends what goes on for a conversation,
    `model` gives the one that holds KV, and `has_kv` says whether there may be any.
    """

    def __init__(
        self,
        living: Callable[[], Awaitable[Sequence[str]]],
        leave: Callable[[str], Awaitable[None]],
        model: Callable[[], Awaitable[ChatModel]],
        has_kv: Callable[[], bool],
    ) -> None:
        self._living = living
        self._leave = leave
        self._model = model
        self._has_kv = has_kv
        self._tasks: set[asyncio.Task[None]] = set()

    async def all_but_the_living(self, model: ChatModel) -> None:
        """Remove the KV of what was deleted while this model was not there to hear of it."""
        try:
            await model.loaded.engine.retain(await self._living())
        except InglenookError as error:
            # The model can be used all the same, and the next start tries again.
            logger.warning("KV of deleted conversations may be left: %s", error)

    def soon(self, conversation_id: str) -> None:
        """End what goes on for a deleted conversation, and let the engine forget its words."""
        self._begin(self._leave_and_forget(conversation_id))

    def source_soon(self, source: str) -> None:
        """Let the engine forget a document, with all that was said about it."""
        self._begin(self._forget(source))

    async def settled(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _leave_and_forget(self, conversation_id: str) -> None:
        await self._leave(conversation_id)
        await self._forget(conversation_id)

    async def _forget(self, owner: str) -> None:
        if not self._has_kv():
            return
        try:
            # Also one that is still loading, which has asked already who lives; and one that was
            # freed, since its KV lies on the disk.
            model = await self._model()
            await model.loaded.engine.forget(owner)
        except InglenookError as error:
            logger.info("there is no engine to forget: %s", error)
