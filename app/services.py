"""The composition root: who exists, in which order they are made and closed.

    Paths, Settings -> Database -> Conversations -> ChatSession -> Jobs, IdleWork
                       ChatModel (loaded in a thread) ---^

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
from app.history.conversations import Conversations
from app.history.database import Database
from app.history.programs import Programs
from app.launch.start_facts import StartFacts
from app.machine.this_machine import ThisMachine
from app.media.pending import Pending
from app.memory import Memory, given_back, memory_of
from app.models.local import LocalModel, find_model
from app.models.mmproj import mmproj_beside
from app.models.starter import starter_model
from app.models.step_down import steps_down
from app.paths import Paths
from app.presets.store import Presets
from app.safe_mode import safe_config
from app.settings import Settings, load_settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import (
    HistoryError,
    InglenookError,
    InvalidParams,
    ModelError,
    ModelNotFound,
    OutOfMemory,
    UsageError,
)
from engine.media import MediaKind

if TYPE_CHECKING:
    from app.cuda.installation import Installation
    from app.models.library import ModelLibrary

IDLE_LOOK_S = 15.0
"""How often it is looked whether the model may be freed."""

logger = logging.getLogger(__name__)

AS_USUAL = StartFacts()


class Services:
    """Everything of one home. Owned by the event loop of the process that owns the home.

    `model` and `draft_model` override the saved choices: a path, a name of `models list`, or empty.
    `adapters` (each a path or a name, and a scale) go before those that are saved for the model,
    and the file `mmproj` before the multimodal part that lies beside it.
    In safe mode the model is held with little memory and no extras.
    """

    def __init__(
        self,
        paths: Paths,
        model: str = "",
        draft_model: str = "",
        start_facts: StartFacts = AS_USUAL,
        adapters: Sequence[tuple[str, float]] = (),
        mmproj: str = "",
    ) -> None:
        paths.create()
        self.start_facts = start_facts
        self.paths = paths
        self._settings = load_settings(paths.settings)
        self._wanted_model = model
        self._wanted_draft_model = draft_model
        self._wanted_adapters = tuple(adapters)
        self._wanted_mmproj = mmproj
        self.url = ""
        """Where the app is reached; set before the page is built."""
        self._loading: asyncio.Future[ChatModel] | None = None
        self._keeps_kv = False
        self._config: EngineConfig | None = None
        self._step_notice = ""
        self._asked_at = monotonic()
        self._closing: asyncio.Future[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._forgetting: set[asyncio.Task[None]] = set()

    @property
    def settings(self) -> Settings:
        return self._settings

    def save_settings(self, settings: Settings) -> None:
        save_settings(self.paths.settings, settings)
        self._settings = settings

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
        return ChatSession(self.conversations, self.chat_model, lambda: self.settings)

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

    @cached_property
    def model_path(self) -> Path:
        """Raises ModelNotFound when none was chosen and the starter is not installed."""
        return find_model(self.paths, self._settings, self._wanted_model)

    @cached_property
    def draft_model_path(self) -> Path | None:
        """The model that guesses for the other one; None: there is none."""
        wanted = self._wanted_draft_model or self._settings.draft_model
        return find_model(self.paths, self._settings, wanted) if wanted else None

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """What changes the model: those named with the command, or else those saved for it.

        Raises InvalidParams.
        """
        if self._wanted_adapters:
            return self.named_adapters(self._wanted_adapters)
        return self._settings.adapters_of(self.model_path)

    def named_adapters(self, named: Sequence[tuple[str, float]]) -> tuple[Adapter, ...]:
        return tuple(
            Adapter(find_model(self.paths, self._settings, name), scale) for name, scale in named
        )

    @property
    def mmproj_path(self) -> Path | None:
        """What the model reads pictures and sounds with; None: there is nothing.

        Raises ModelNotFound.
        """
        if not self._wanted_mmproj:
            return mmproj_beside(self.model_path)
        path = Path(self._wanted_mmproj)
        if not path.is_file():
            raise ModelNotFound(f"There is no mmproj file at {path}: name another one.")
        return path

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
    def cuda(self) -> "Installation":
        """What can be installed for an NVIDIA card."""
        from app.cuda.installation import Installation
        from app.cuda.wheels import brought

        return Installation(self.paths, self.library.connections, wheels=brought())

    def _loaded_bytes(self) -> int:
        memory = self.memory
        return 0 if memory is None else given_back(memory)

    @property
    def loaded_model(self) -> ChatModel | None:
        """The model, if loading has ended well."""
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is not None:
            return None
        return loading.result()

    @property
    def model_notice(self) -> str:
        """What the user should know about the loaded model; mostly nothing."""
        if self.loaded_model is None:
            return ""
        return " ".join(filter(None, (self._step_notice, self.loaded_model.notice)))

    @property
    def model_error(self) -> str:
        """Why there is no model, once loading has failed; otherwise empty."""
        loading = self._loading
        if loading is None or not loading.done() or loading.exception() is None:
            return ""
        return str(loading.exception())

    async def chat_model(self) -> ChatModel:
        """The model, loaded at the first call, or at the first after it was freed. Raises the
        sentence that says why it cannot be."""
        self._asked_at = monotonic()
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        return await asyncio.shield(self._loading)

    async def _load(self) -> ChatModel:
        if self._closing is not None:
            # The memory of two would not fit.
            await asyncio.wait([self._closing])
        model = await self._load_model()
        if self._keeps_kv:
            await self._retain(model)
        return model

    async def _load_model(self) -> ChatModel:
        """As it was chosen, or with less where the memory is too small for that."""
        chosen, self._step_notice = self._engine_config(), ""
        try:
            return await self._open(chosen)
        except OutOfMemory as error:
            failure = error
        # Whoever names a model or an adapter in the command wants that one or none.
        is_named = bool(self._wanted_model or self._wanted_adapters)
        starter = None if is_named else starter_model()
        for config, change in steps_down(chosen, starter):
            try:
                model = await self._open(config)
            except (OutOfMemory, InvalidParams):
                continue
            self._step_notice = (
                f"{failure} It was loaded {change}."
                if config.model_path == chosen.model_path
                else f"{failure} It was not loaded, {change}."
            )
            return model
        raise failure

    async def _open(self, config: EngineConfig) -> ChatModel:
        self._config = config
        return await asyncio.to_thread(load_chat_model, config)

    def _engine_config(self) -> EngineConfig:
        if self.start_facts.is_safe:
            return safe_config(self.settings.engine_config(self.model_path))
        return self.settings.engine_config(
            self.model_path,
            self.paths.kv if self._keeps_kv else None,
            self.draft_model_path,
            self.adapters,
            self.mmproj_path,
        )

    @property
    def memory(self) -> Memory | None:
        """What the loaded model takes; None as long as there is none."""
        model = self.loaded_model
        if model is None or self._config is None:
            return None
        return memory_of(model.loaded, self._config)

    async def reload_model(self) -> None:
        """Load the model again, with the settings as they are now.

        Refused while it is answering. Raises the sentence that says why it cannot be loaded.
        """
        if self._loading is not None:
            await asyncio.wait([self._loading])
        self._check_quiet()
        self._loading = asyncio.ensure_future(self._reload(self.loaded_model))
        await self.chat_model()

    async def use_model(self, path: Path) -> str:
        """Let this model answer, from now on and at every start; what is loaded is freed first.

        Gives what the user should know of it. Raises the sentence that says why it cannot be used;
        then the old one answers on. Refused while it is answering.
        """
        # Reading a header needs the library, which other commands should not wait for.
        from engine.backends.llama_cpp.chat_file import check_chat_file

        await asyncio.to_thread(check_chat_file, path)
        chosen = replace(self._settings, model="" if path == starter_model() else str(path))
        return await self._load_instead(chosen, str(path), "", "")

    async def use_adapters(self, adapters: Sequence[Adapter]) -> str:
        """Let these, and no others, change the model that answers, from now on and at every start.

        Gives what the user should know of it. Raises the sentence that says why they cannot be
        used; then it answers on as before. Refused while it is answering.
        """
        path, settings = self.model_path, self._settings
        chosen = settings.with_adapters(path, adapters)
        # Raises InvalidParams for too many of them.
        chosen.engine_config(path)
        return await self._load_instead(chosen, str(path), self._wanted_model, self._wanted_mmproj)

    async def _load_instead(self, chosen: Settings, model: str, wanted: str, mmproj: str) -> str:
        """Load `model` by `chosen` in the place of what is loaded, if something is, and keep that
        choice; `wanted` and `mmproj` are what is named by a command afterwards."""
        before = self._wanted_model, self._wanted_adapters, self._settings, self._wanted_mmproj
        if self._loading is not None:
            self._check_quiet()
            # By its name, so that the starter does not take its place.
            self._choose(model, (), chosen, mmproj)
            try:
                await self.reload_model()
            except InglenookError as error:
                self._choose(*before)
                with suppress(InglenookError):
                    await self.reload_model()
                raise ModelError(f"{error} {self.model_name} answers on.") from error
        self._choose(wanted, (), chosen, mmproj)
        self.save_settings(chosen)
        return self.model_notice

    def _choose(
        self,
        model: str,
        adapters: tuple[tuple[str, float], ...],
        settings: Settings,
        mmproj: str,
    ) -> None:
        self._wanted_model, self._wanted_adapters, self._settings = model, adapters, settings
        self._wanted_mmproj = mmproj
        self.__dict__.pop("model_path", None)

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
        minutes, model = self.settings.unload_after_minutes, self.loaded_model
        if any(self.activity().values()):
            self._asked_at = now
        if minutes is None or model is None or now - self._asked_at < 60 * minutes:
            return False
        self._loading = None
        self._closing = asyncio.ensure_future(self._free(model))
        await asyncio.wait([self._closing])
        return True

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

    async def _reload(self, old: ChatModel | None) -> ChatModel:
        if old is not None:
            # First of all: the memory of two would not fit.
            await self._free(old)
        return await self._load()

    async def _free(self, model: ChatModel) -> None:
        """With what holds on to it; what nobody waits for is left undone."""
        self.prospects.forget_all()
        await self.jobs.leave_idle_work()
        await asyncio.to_thread(model.close)

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

    async def _retain(self, model: ChatModel) -> None:
        """Remove the KV of what was deleted while this model was not there to hear of it."""
        try:
            owners = [*await self.conversations.ids(), *await self.programs.owners()]
            await model.loaded.engine.retain(owners)
        except InglenookError as error:
            # The model can be used all the same, and the next start tries again.
            logger.warning("KV of deleted conversations may be left: %s", error)

    def _forget_soon(self, conversation_id: str) -> None:
        self.prospects.forget(conversation_id)
        task = asyncio.ensure_future(self._forget(conversation_id))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    async def _forget(self, conversation_id: str) -> None:
        """End what goes on for a deleted conversation, and let the engine forget its words."""
        await self.jobs.leave(conversation_id)
        if self._loading is None and not self._keeps_kv:
            return
        try:
            # Also one that is still loading, which has asked already who lives; and one that was
            # freed, since its KV lies on the disk.
            model = await self.chat_model()
            await model.loaded.engine.forget(conversation_id)
        except InglenookError as error:
            logger.info("there is no engine to forget a conversation: %s", error)

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
        loading = asyncio.ensure_future(self.chat_model())
        loading.add_done_callback(_note_failure)

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
        if "cuda" in self.__dict__:
            await self.cuda.close()
        if "library" in self.__dict__:
            await self.library.close()
        if self._closing is not None:
            await asyncio.wait([self._closing])
        if self._loading is not None:
            await asyncio.wait([self._loading])
        if self._forgetting:
            await asyncio.wait(self._forgetting)
        if self.loaded_model is not None:
            await asyncio.to_thread(self.loaded_model.close)
        if "conversations" in self.__dict__:
            await asyncio.to_thread(self.conversations.close)
        if "database" in self.__dict__:
            await asyncio.to_thread(self.database.close)


def _note_failure(loading: "asyncio.Future[ChatModel]") -> None:
    if not loading.cancelled() and isinstance(loading.exception(), InglenookError):
        logger.error("%s", loading.exception())
