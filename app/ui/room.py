"""What the page asks of the chat room: answers as jobs, which outlive the page that shows them."""

from collections.abc import AsyncIterator
from typing import Protocol

from app.chat.message import Message
from app.history.conversations import Conversations
from app.history.database import Database
from app.settings import Settings


class Answer(Protocol):
    """One moment of an answer that is being written."""

    @property
    def message(self) -> Message: ...
    @property
    def num_prompt_tokens(self) -> int: ...
    @property
    def num_prompt_tokens_read(self) -> int: ...


class Job(Protocol):
    """An answer on its way. Closing what `follow` gives ends the watching, not the job."""

    @property
    def answer(self) -> Answer: ...
    def follow(self, hz: float = 8.0) -> AsyncIterator[Answer]: ...


class Jobs(Protocol):
    """The answers being written, at most one for each conversation."""

    def get(self, conversation_id: str) -> Job | None: ...
    async def send(self, conversation_id: str, text: str) -> Job: ...
    async def regenerate(self, conversation_id: str) -> Job: ...
    def stop(self, conversation_id: str) -> None: ...


class Services(Protocol):
    """The part of the app's services that the page uses."""

    @property
    def database(self) -> Database: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def model_name(self) -> str: ...
    @property
    def is_starter_model(self) -> bool: ...
    @property
    def model_error(self) -> str: ...
    def save_settings(self, settings: Settings) -> None: ...
