"""The composition root: who exists, in which order they are made and closed.

    Paths, Settings -> Database -> Conversations -> ChatSession -> Jobs, IdleWork
                 `--> ModelInUse, ModelHolder --------^

Nothing is opened before it is asked for, so that a command pays only for what it uses.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from app.api.keys import api_key
from app.chat.belonging import document_source, program_owner
from app.chat.chat_model import ChatModel, load_chat_model
from app.chat.forms import Forms
from app.chat.idle import IdleWork
from app.chat.jobs import Jobs
from app.chat.prospect import Prospects
from app.chat.senses import TEXT_ALONE, Senses, check_readable
from app.chat.session import ChatSession
from app.chat.sight import Sights
from app.forgetting import Forgetting
from app.history.conversations import Conversations
from app.history.database import Database
from app.history.programs import Programs
from app.launch.start_facts import StartFacts
from app.machine.this_machine import ThisMachine
from app.media.pending import Pending
from app.memory import Memory, given_back
from app.models.choice import ModelChoice
from app.models.holder import ModelHolder
from app.models.in_use import ModelInUse
from app.models.starter import starter_model
from app.paths import Paths
from app.presets.store import Presets
from app.settings import Settings, load_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import HistoryError
from engine.media import MediaKind

if TYPE_CHECKING:
    from app.cuda.installation import Installation
    from app.documents.answering import Answering
    from app.documents.library import Library
    from app.documents.received import Received
    from app.models.library import ModelLibrary
    from app.updates.updates import Updates

IDLE_LOOK_S = 15.0
"""How often it is looked whether the model may be freed."""

logger = logging.getLogger(__name__)

AS_USUAL = StartFacts()


class Services:
    """Everything of one home. Owned by the event loop of the process that owns the home.

    `model` and `draft_model` override the saved choices: a path, a name of `models list`, or empty.
    `adapters` (each a path or a name, and a scale) go before those that are saved for the model,
    and the file `mmproj` before the multimodal part that lies beside it. `backend` is who computes.
    In safe mode the model is held with little memory and no extras. Without `makes_folders` they
    may be missing or read-only, and whoever writes hears of it. With `only_reads` another process
    owns the home, and the documents are only looked into.
    """

    def __init__(
        self,
        paths: Paths,
        model: str = "",
        draft_model: str = "",
        start_facts: StartFacts = AS_USUAL,
        adapters: Sequence[tuple[str, float]] = (),
        mmproj: str = "",
        backend: str = "auto",
        *,
        makes_folders: bool = True,
        only_reads: bool = False,
    ) -> None:
        self._only_reads = only_reads
        if makes_folders:
            paths.create()
        self.start_facts = start_facts
        self.paths = paths
        self._holder = ModelHolder(
            lambda: self.model.wanted_config,
            lambda: self.model.choice.fallback,
            self._open_model,
            self._on_loaded,
            self._on_leaving,
        )
        self.model = ModelInUse(
            ModelChoice(
                paths=paths,
                settings=load_settings(paths.settings),
                model=model,
                draft_model=draft_model,
                adapters=tuple(adapters),
                mmproj=mmproj,
                backend=backend,
            ),
            self._holder,
            lambda: self.library,
            lambda: any(self.activity().values()),
            is_safe=start_facts.is_safe,
        )
        self.url = ""
        """Where the app is reached; set before the page is built."""
        self._resting: asyncio.Task[None] | None = None
        self._forgetting = Forgetting(
            self._living,
            lambda conversation_id: self.jobs.leave(conversation_id),
            self.chat_model,
            lambda: self._holder.is_begun or self.model.keeps_kv,
        )

    @property
    def settings(self) -> Settings:
        return self.model.choice.settings

    def save_settings(self, settings: Settings) -> None:
        self.model.save_settings(settings)

    @cached_property
    def api_key(self) -> str:
        """What other programs need for /v1; made and kept when there is none."""
        return api_key(self.paths)

    @cached_property
    def database(self) -> Database:
        return Database(self.paths.database)

    @cached_property
    def conversations(self) -> Conversations:
        return Conversations(self.database, on_deleted=self._forget_soon)

    @cached_property
    def programs(self) -> Programs:
        return Programs(self.database)

    @cached_property
    def session(self) -> ChatSession:
        return ChatSession(
            self.conversations, self.chat_model, lambda: self.settings, lambda: self.answering
        )

    @cached_property
    def answering(self) -> "Answering":
        """Answers from the user's own files."""
        from app.documents.answering import Answering

        return Answering(lambda: self.documents)

    @cached_property
    def sights(self) -> Sights:
        return Sights(
            self.conversations,
            lambda: self.loaded_model,
            lambda: self.settings,
            lambda: self.answering,
        )

    @cached_property
    def prospects(self) -> Prospects:
        return Prospects(self.conversations, lambda: self.loaded_model, lambda: self.answering)

    @cached_property
    def presets(self) -> Presets:
        return Presets(self.paths.presets, self._recommended)

    @cached_property
    def pending(self) -> Pending:
        """Pictures and sounds that were added to messages which are not sent yet."""
        return Pending()

    @property
    def senses(self) -> Senses:
        """What the loaded model reads beside text; nothing as long as there is none."""
        model = self.loaded_model
        return TEXT_ALONE if model is None else Senses.of(model.loaded)

    async def check_readable(self, kind: MediaKind) -> None:
        """Raises UsageError with the remedy where the model cannot read this."""
        check_readable((await self.chat_model()).loaded.info, [kind])

    def _recommended(self) -> Mapping[str, str]:
        model = self.loaded_model
        return {} if model is None else model.loaded.info.sampling

    @cached_property
    def machine(self) -> ThisMachine:
        return ThisMachine(self)

    @cached_property
    def forms(self) -> Forms:
        return Forms(self.paths.grammars, self.chat_model)

    @cached_property
    def jobs(self) -> Jobs:
        idle = IdleWork(
            self.conversations,
            lambda: self.settings.automatic_titles and not self.is_starter_model,
        )
        return Jobs(self.session, idle)

    @property
    def model_path(self) -> Path:
        """Raises ModelNotFound when none was chosen and the starter is not installed."""
        return self.model.choice.model_path

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """What changes the model: those named with the command, or else those saved for it.

        Raises InvalidParams.
        """
        return self.model.choice.used_adapters

    @property
    def is_starter_model(self) -> bool:
        starter = starter_model()
        return starter is not None and self.model_path == starter

    @cached_property
    def library(self) -> "ModelLibrary":
        """Which models are here, and how they come and go."""
        # It brings what speaks to other machines, which other commands should not wait for.
        from app.models.library import ModelLibrary

        return ModelLibrary(self.paths, lambda: self.settings, self._loaded_bytes)

    @cached_property
    def documents(self) -> "Library":
        """The user's own files, followed while the app runs."""
        from app.documents.opening import open_library

        return open_library(
            self.paths,
            is_followed=self.model.keeps_kv,
            choose=lambda: self.settings.embedder_choice,
            is_busy=self._is_writing,
            on_gone=lambda sha256: self._forgetting.source_soon(document_source(sha256)),
            only_reads=self._only_reads,
        )

    @cached_property
    def received(self) -> "Received":
        """Copies of documents that were dropped on the page."""
        from app.documents.received import Received

        return Received(self.paths.received)

    @cached_property
    def cuda(self) -> "Installation":
        """What can be installed for an NVIDIA card."""
        from app.cuda.installation import Installation
        from app.cuda.wheels import brought

        return Installation(self.paths, self.library.connections, wheels=brought())

    @cached_property
    def updates(self) -> "Updates":
        """Whether there is a newer version; asked only when somebody wants to know."""
        from app.updates.updates import Updates

        return Updates(self.library.connections)

    def _is_writing(self) -> bool:
        """Whether somebody waits for the model; nothing is opened for the question."""
        model = self.loaded_model
        engine = None if model is None else model.loaded.engine
        return (
            ("jobs" in self.__dict__ and self.jobs.num_running > 0)
            or engine is not None
            and engine.num_running + engine.num_waiting > 0
        )

    def _loaded_bytes(self) -> int:
        memory = self.memory
        return 0 if memory is None else given_back(memory)

    @property
    def loaded_model(self) -> ChatModel | None:
        """The model, if loading has ended well."""
        return self._holder.model

    @property
    def model_notice(self) -> str:
        """What the user should know about the loaded model; mostly nothing."""
        return self._holder.notice

    @property
    def model_error(self) -> str:
        """Why there is no model, once loading has failed; otherwise empty."""
        return self._holder.error

    @property
    def memory(self) -> Memory | None:
        """What the loaded model takes; None as long as there is none."""
        return self._holder.memory

    async def chat_model(self) -> ChatModel:
        """The model, once it is loaded; loading begins here where nothing has begun it, where it
        was freed, and where it could not be loaded before.

        Raises the sentence that says why it cannot be.
        """
        return await self._holder.get()

    @property
    def engine_config(self) -> EngineConfig:
        """With what the model is loaded, or would be now. Raises ModelNotFound, InvalidParams."""
        return self.model.wanted_config if self.memory is None else self.memory.config

    async def _open_model(self, config: EngineConfig) -> ChatModel:
        return await asyncio.to_thread(load_chat_model, config)

    async def _on_loaded(self, model: ChatModel) -> None:
        if self.model.keeps_kv:
            await self._forgetting.all_but_the_living(model)

    async def _on_leaving(self) -> None:
        """End what holds on to the model; what nobody waits for is left undone."""
        self.prospects.forget_all()
        await self.jobs.leave_idle_work()

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(IDLE_LOOK_S)
            await self.model.free_when_idle(monotonic())

    async def _living(self) -> list[str]:
        living = [*await self.conversations.ids(), *await self.programs.owners()]
        if self.paths.documents.exists():
            read = await self.documents.ever_read_whole()
            living += map(document_source, read)
        return living

    def _forget_soon(self, conversation_id: str) -> None:
        self.prospects.forget(conversation_id)
        self._forgetting.soon(conversation_id)

    async def program_user(self, user: str) -> str:
        """The owner of what a program says for this user of its own; empty when it names none."""
        owner = program_owner(user)
        if owner:
            try:
                await self.programs.note(owner)
            except HistoryError as error:
                # Then its KV is removed at the next start, and read again.
                logger.warning("a user of a program was not noted: %s", error)
        return owner

    def start(self) -> None:
        """Begin what the app needs: the model in the background, with the KV of earlier runs.

        Call it in the event loop of the process that owns the home. A model that cannot be
        loaded leaves the history readable.
        """
        self._resting = asyncio.create_task(self._rest())
        self.model.begin()
        if self.paths.documents.exists():
            # What is wrong with it hears whoever asks for a file.
            with suppress(HistoryError):
                self.documents.follow()

    async def tidy(self) -> None:
        """Mark what a crash cut short, and finally remove what was deleted in an earlier run."""
        num_interrupted = await self.conversations.interrupt_stale()
        if num_interrupted:
            logger.warning("%d answers had been interrupted", num_interrupted)
        await self.conversations.purge_deleted()

    def activity(self) -> dict[str, int]:
        """How much is going on: answers that are written, requests that are computed or wait."""
        model = self.loaded_model
        engine = None if model is None else model.loaded.engine
        return {
            "jobs": self.jobs.num_running,
            "running": 0 if engine is None else engine.num_running,
            "waiting": 0 if engine is None else engine.num_waiting,
        }

    async def close(self) -> None:
        """Keep what is being written, then end the engine and the store."""
        if "jobs" in self.__dict__:
            await self.jobs.close()
        if self._resting is not None:
            self._resting.cancel()
        if "documents" in self.__dict__:
            await self.documents.close()
        if "cuda" in self.__dict__:
            await self.cuda.close()
        if "library" in self.__dict__:
            await self.library.close()
        await self._holder.settled()
        await self._forgetting.settled()
        await self._holder.close()
        if "conversations" in self.__dict__:
            await asyncio.to_thread(self.conversations.close)
        if "database" in self.__dict__:
            await asyncio.to_thread(self.database.close)
