"""The composition root: who exists, in which order they are made and closed.

    Paths, Settings -> Database -> Conversations -> ChatSession -> Jobs, IdleWork
                 `--> ModelChoice -> ModelHolder -----^

Nothing is opened before it is asked for, so that a command pays only for what it uses.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from app.api.keys import api_key
from app.chat.belonging import program_owner
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
from app.models.local import LocalModel
from app.models.starter import starter_model
from app.paths import Paths
from app.presets.store import Presets
from app.settings import Settings, load_settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import (
    HistoryError,
    InglenookError,
    ModelError,
    ModelNotFound,
    UsageError,
)
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
    and the file `mmproj` before the multimodal part that lies beside it.
    In safe mode the model is held with little memory and no extras. Without `makes_folders` they
    may be missing or read-only, and whoever writes hears of it.
    """

    def __init__(
        self,
        paths: Paths,
        model: str = "",
        draft_model: str = "",
        start_facts: StartFacts = AS_USUAL,
        adapters: Sequence[tuple[str, float]] = (),
        mmproj: str = "",
        *,
        makes_folders: bool = True,
    ) -> None:
        if makes_folders:
            paths.create()
        self.start_facts = start_facts
        self.paths = paths
        self._choice = ModelChoice(
            paths=paths,
            settings=load_settings(paths.settings),
            model=model,
            draft_model=draft_model,
            adapters=tuple(adapters),
            mmproj=mmproj,
        )
        self._holder = ModelHolder(
            self._wanted_config,
            lambda: None if self._choice.is_named else starter_model(),
            self._open_model,
            self._on_loaded,
            self._on_leaving,
        )
        self.url = ""
        """Where the app is reached; set before the page is built."""
        self._keeps_kv = False
        self._resting: asyncio.Task[None] | None = None
        self._forgetting = Forgetting(
            self._living,
            lambda conversation_id: self.jobs.leave(conversation_id),
            self.chat_model,
            lambda: self._holder.is_begun or self._keeps_kv,
        )

    @property
    def settings(self) -> Settings:
        return self._choice.settings

    def save_settings(self, settings: Settings) -> None:
        save_settings(self.paths.settings, settings)
        self._choice = replace(self._choice, settings=settings)

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
        return Sights(self.conversations, lambda: self.loaded_model, lambda: self.settings)

    @cached_property
    def prospects(self) -> Prospects:
        return Prospects(self.conversations, lambda: self.loaded_model)

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
        return self._choice.model_path

    @property
    def draft_model_path(self) -> Path | None:
        """The model that guesses for the other one; None: there is none."""
        return self._choice.draft_model_path

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """What changes the model: those named with the command, or else those saved for it.

        Raises InvalidParams.
        """
        return self._choice.used_adapters

    def named_adapters(self, named: Sequence[tuple[str, float]]) -> tuple[Adapter, ...]:
        return self._choice.find_adapters(named)

    @property
    def mmproj_path(self) -> Path | None:
        """What the model reads pictures and sounds with; None: there is nothing.

        Raises ModelNotFound.
        """
        return self._choice.mmproj_path

    @property
    def is_starter_model(self) -> bool:
        starter = starter_model()
        return starter is not None and self.model_path == starter

    @property
    def model_name(self) -> str:
        model = self.loaded_model
        if model is not None:
            return model.name
        try:
            return self.model_path.stem
        except ModelNotFound:
            return "no model"

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

        return open_library(self.paths, is_followed=self._keeps_kv)

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
        """The model, loaded at the first call, or at the first after it was freed or could not be
        loaded. Raises the sentence that says why it cannot be."""
        return await self._holder.get()

    @property
    def engine_config(self) -> EngineConfig:
        """With what the model is loaded, or would be now. Raises ModelNotFound, InvalidParams."""
        return self._wanted_config() if self.memory is None else self.memory.config

    def _wanted_config(self) -> EngineConfig:
        return self._choice.config(keeps_kv=self._keeps_kv, is_safe=self.start_facts.is_safe)

    async def _open_model(self, config: EngineConfig) -> ChatModel:
        return await asyncio.to_thread(load_chat_model, config)

    async def _on_loaded(self, model: ChatModel) -> None:
        if self._keeps_kv:
            await self._forgetting.all_but_the_living(model)

    async def _on_leaving(self) -> None:
        """End what holds on to the model; what nobody waits for is left undone."""
        self.prospects.forget_all()
        await self.jobs.leave_idle_work()

    async def reload_model(self) -> None:
        """Load the model again, with the settings as they are now.

        Refused while it is answering. Raises the sentence that says why it cannot be loaded.
        """
        await self._holder.settled()
        self._check_quiet()
        await self._holder.replace()

    async def use_model(self, path: Path) -> str:
        """Let this model answer, from now on and at every start; what is loaded is freed first.

        Gives what the user should know of it. Raises the sentence that says why it cannot be used;
        then the old one answers on. Refused while it is answering.
        """
        # Reading a header needs the library, which other commands should not wait for.
        from engine.backends.llama_cpp.chat_file import check_chat_file

        await asyncio.to_thread(check_chat_file, path)
        chosen = replace(self.settings, model="" if path == starter_model() else str(path))
        return await self._load_instead(chosen, str(path), "", "")

    async def use_adapters(self, adapters: Sequence[Adapter]) -> str:
        """Let these, and no others, change the model that answers, from now on and at every start.

        Gives what the user should know of it. Raises the sentence that says why they cannot be
        used; then it answers on as before. Refused while it is answering.
        """
        path = self.model_path
        chosen = self.settings.with_adapters(path, adapters)
        # Raises InvalidParams for too many of them.
        chosen.engine_config(path)
        wanted = self._choice.model, self._choice.mmproj
        return await self._load_instead(chosen, str(path), *wanted)

    async def _load_instead(self, chosen: Settings, model: str, wanted: str, mmproj: str) -> str:
        """Load `model` by `chosen` in the place of what is loaded, if something is, and keep that
        choice; `wanted` and `mmproj` are what is named by a command afterwards."""
        before = self._choice
        if self._holder.is_begun:
            self._check_quiet()
            # By its name, so that the starter does not take its place.
            self._choice = replace(before, settings=chosen, model=model, adapters=(), mmproj=mmproj)
            try:
                await self.reload_model()
            except InglenookError as error:
                self._choice = before
                with suppress(InglenookError):
                    await self.reload_model()
                raise ModelError(f"{error} {self.model_name} answers on.") from error
        self._choice = replace(before, model=wanted, adapters=(), mmproj=mmproj)
        self.save_settings(chosen)
        return self.model_notice

    async def remove_model(self, model: LocalModel) -> None:
        """Delete what was downloaded, forget what was added; not what answers."""
        if self.model_path == model.path:
            raise UsageError(f"{model.name} is the model that answers: use another one first.")
        if model.path in [each.path for each in self.adapters]:
            raise UsageError(
                f"{model.name} changes the model that answers: take it off that one first."
            )
        await asyncio.to_thread(self.library.remove, model)
        # Another model would be loaded with it later on, and fail.
        self.save_settings(self.settings.without_adapter(model.path))
        if self.settings.model in (str(model.path), model.name):
            self.save_settings(replace(self.settings, model=""))

    async def free_when_idle(self, now: float) -> bool:
        """Free the model when nobody has asked anything for as long as the settings say. Gives
        whether it was freed; the next message loads it again."""
        if any(self.activity().values()):
            self._holder.note_use(now)
        minutes = self.settings.unload_after_minutes
        return minutes is not None and await self._holder.free_after(60 * minutes, now)

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(IDLE_LOOK_S)
            await self.free_when_idle(monotonic())

    def _check_quiet(self) -> None:
        if any(self.activity().values()):
            raise UsageError(
                "The model is answering: wait for the end of the answer or stop it, and then load"
                " the model again."
            )

    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        """Let new budgets hold from now on, and at the next start."""
        self.save_settings(replace(self.settings, kv_ram_bytes=ram_bytes, kv_disk_bytes=disk_bytes))
        if self.loaded_model is not None:
            await self.loaded_model.loaded.engine.limit_kv(ram_bytes, disk_bytes)

    async def forget_kv(self) -> None:
        """Delete all that was read and kept, in memory and on the disk. Not while it answers."""
        if any(self.activity().values()):
            raise UsageError(
                "The model is answering: wait for the end of the answer or stop it, and then"
                " delete what is stored."
            )
        if self.loaded_model is not None or self._keeps_kv:
            # One that was freed left its KV on the disk.
            await (await self.chat_model()).loaded.engine.forget_all()

    async def _living(self) -> list[str]:
        return [*await self.conversations.ids(), *await self.programs.owners()]

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
        self._keeps_kv = True
        self._resting = asyncio.create_task(self._rest())
        self._holder.begin()
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
