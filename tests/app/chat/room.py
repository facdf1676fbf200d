"""Conversations on a real database, and answers from a fake engine that the test writes."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from sqlite_utils import Database as Tables

from app.chat.chat_model import ChatModel
from app.chat.idle import IdleWork
from app.chat.jobs import Jobs
from app.chat.message import Message
from app.chat.session import ChatSession
from app.documents.answering import Answering
from app.documents.library import Library
from app.history.conversations import Conversations
from app.history.database import Database
from app.settings import Settings
from engine.errors import HistoryError
from tests.fakes_documents import FakeReader
from tests.fakes_model import FakeEngine, FakeStream, fake_chat_model
from tests.waiting import until

T = TypeVar("T")


class FragileDatabase(Database):
    """Refuses the next `num_failures` transactions with `error`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.num_failures = 0
        self.num_refused = 0
        self.error = HistoryError("There is no room left.")

    async def run(self, fn: Callable[[Tables], T]) -> T:
        if self.num_failures > 0:
            self.num_failures -= 1
            self.num_refused += 1
            raise self.error
        return await super().run(fn)


class Room:
    """Everything a turn needs. `engine` writes what the test says."""

    def __init__(self, path: Path, template: str = "chatml", max_tokens: int = 4096) -> None:
        self.template_name = template
        self.database = FragileDatabase(path)
        self.conversations = Conversations(self.database)
        self.engine = FakeEngine(max_tokens)
        self.chat_model = fake_chat_model(self.engine, template)
        self.settings = Settings(automatic_titles=False)
        self.session = ChatSession(
            self.conversations,
            lambda: self.model(),
            lambda: self.settings,
            lambda: self.answering,
        )
        self.gone: list[str] = []
        """Documents that were read whole and left the library."""
        self._documents = path.with_name("documents.sqlite3")
        self.idle = IdleWork(self.conversations, lambda: self.settings.automatic_titles)
        self.jobs = Jobs(self.session, self.idle)

    @cached_property
    def library(self) -> Library:
        return Library(self._documents, FakeReader(), on_gone=self.gone.append)

    @cached_property
    def answering(self) -> Answering:
        return Answering(lambda: self.library)

    async def add(self, **texts: str) -> Path:
        """Files with these texts, in the library; their folder."""
        folder = self._documents.with_name("papers")
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.txt").write_text(text)
        await self.library.prepare()
        await self.library.add(folder)
        await self.library.settled()
        return folder

    async def model(self) -> ChatModel:
        return self.chat_model

    async def close(self) -> None:
        self.database.num_failures = 0
        await self.jobs.close()
        self.chat_model.close()
        if "library" in self.__dict__:
            await self.library.close()
        self.conversations.close()
        self.database.close()

    async def stream(self, number: int = -1, count: int = 1) -> FakeStream:
        """The request that has reached the engine; `count` of them are awaited."""
        await until(lambda: len(self.engine.streams) >= count)
        return self.engine.streams[number]

    async def stored(self, conversation_id: str) -> list[Message]:
        return await self.conversations.messages(conversation_id)
