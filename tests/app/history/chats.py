"""Conversations with a clock of their own, and two sentences that most tests begin with."""

from dataclasses import replace

from app.chat.message import Message, MessageState
from app.history.conversations import Conversations
from app.history.database import Database


class Clock:
    """A clock that moves by a second at every look."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class Chats(Conversations):
    """`clock` may be asked, too: that makes time pass."""

    def __init__(self, database: Database) -> None:
        self.clock = Clock()
        super().__init__(database, self.clock)

    async def say(self, conversation_id: str, text: str, answer: str) -> Message:
        """A whole turn; its answer."""
        turn = await self.begin_turn(conversation_id, text)
        return await self.end(turn.answer, answer)

    async def end(self, answer: Message, content: str) -> Message:
        ended = replace(answer, content=content, state=MessageState.DONE, finish_reason="stop")
        await self.finish_answer(ended)
        return ended
