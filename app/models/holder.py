"""The one model that is loaded: when it comes, with what, and when it goes.

    nothing --get()--> loading --> held --replace(), free_after()--> freed --get()--> loading ...
                          `--> failed --get()--> loading ...

A model is freed before the next one is loaded, since the memory of two would not fit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

from app.chat.chat_model import ChatModel
from app.memory import Memory, memory_of
from app.models.step_down import steps_down
from engine.config import EngineConfig
from engine.errors import InglenookError, InvalidParams, OutOfMemory

logger = logging.getLogger(__name__)


class ModelHolder:
    """Owned by the event loop.

    `config` says what is to be loaded now, `fallback` which model may take its place where memory
    is too small for it, `open_model` loads. `on_loaded` is called with a new model before anybody
    gets it, `on_leaving` before one is closed.
    """

    def __init__(
        self,
        config: Callable[[], EngineConfig],
        fallback: Callable[[], Path | None],
        open_model: Callable[[EngineConfig], Awaitable[ChatModel]],
        on_loaded: Callable[[ChatModel], Awaitable[None]],
        on_leaving: Callable[[], Awaitable[None]],
    ) -> None:
        self._wanted = config
        self._fallback = fallback
        self._open_model = open_model
        self._on_loaded = on_loaded
        self._on_leaving = on_leaving
        self._loading: asyncio.Future[ChatModel] | None = None
        self._freeing: asyncio.Future[None] | None = None
        self._config: EngineConfig | None = None
        self._step_notice = ""
        self._used_at = monotonic()

    @property
    def is_begun(self) -> bool:
        """It is loading, or has been loaded, well or not, and was not freed since."""
        return self._loading is not None

    @property
    def _has_failed(self) -> bool:
        loading = self._loading
        return loading is not None and loading.done() and loading.exception() is not None

    @property
    def model(self) -> ChatModel | None:
        """The model, if loading has ended well."""
        loading = self._loading
        if loading is None or not loading.done() or self._has_failed:
            return None
        return loading.result()

    @property
    def error(self) -> str:
        """Why there is no model, once loading has failed; otherwise empty."""
        loading = self._loading
        if loading is None or not self._has_failed:
            return ""
        return str(loading.exception())

    @property
    def notice(self) -> str:
        """What the user should know about the loaded model; mostly nothing."""
        if self.model is None:
            return ""
        return " ".join(filter(None, (self._step_notice, self.model.notice)))

    @property
    def memory(self) -> Memory | None:
        """What the loaded model takes; None as long as there is none."""
        if self.model is None or self._config is None:
            return None
        return memory_of(self.model.loaded, self._config)

    def begin(self) -> None:
        """Load it, if it is not there, without waiting; a failure is in the log and in `error`."""
        asyncio.ensure_future(self.get()).add_done_callback(_note_failure)

    async def get(self) -> ChatModel:
        """The model, once it is loaded; loading begins here where nothing has begun it, where it
        was freed, and where it could not be loaded before.

        Raises the sentence that says why it cannot be.
        """
        self._used_at = monotonic()
        # What was wrong may have been put right since: a file that is back, memory that is free.
        if self._loading is None or self._has_failed:
            self._loading = asyncio.ensure_future(self._load())
        return await asyncio.shield(self._loading)

    async def settled(self) -> None:
        """Wait until what is loading or being freed has ended, well or not."""
        for each in (self._freeing, self._loading):
            if each is not None and not each.done():
                await asyncio.wait([each])

    async def replace(self) -> ChatModel:
        """Free what is held and load what is wanted now. Raises as `get` does.

        Once it is settled nobody else has a turn before this begins.
        """
        await self.settled()
        self._loading = asyncio.ensure_future(self._load_after(self.model))
        return await self.get()

    def note_use(self, now: float) -> None:
        """It is used at `now`, by the clock of `monotonic`."""
        self._used_at = now

    async def free_after(self, seconds: float, now: float) -> bool:
        """Free the model if nobody used it for so long. Gives whether it was freed."""
        model = self.model
        if model is None or now - self._used_at < seconds:
            return False
        self._loading = None
        self._freeing = asyncio.ensure_future(self._free(model))
        await asyncio.wait([self._freeing])
        return True

    async def close(self) -> None:
        """Give the memory back, after whatever is still loading."""
        await self.settled()
        if self.model is not None:
            await asyncio.to_thread(self.model.close)

    async def _load_after(self, old: ChatModel | None) -> ChatModel:
        if old is not None:
            await self._free(old)
            # Held here, some of its memory would stay beside the next one's.
            del old
        return await self._load()

    async def _free(self, model: ChatModel) -> None:
        await self._on_leaving()
        await asyncio.to_thread(model.close)

    async def _load(self) -> ChatModel:
        if self._freeing is not None:
            await asyncio.wait([self._freeing])
        model = await self._load_what_fits()
        await self._on_loaded(model)
        return model

    async def _load_what_fits(self) -> ChatModel:
        """As it is wanted, or with less where the memory is too small for that."""
        wanted, self._step_notice = self._wanted(), ""
        try:
            return await self._open(wanted)
        except OutOfMemory as error:
            failure = error
        for config, change in steps_down(wanted, self._fallback()):
            try:
                model = await self._open(config)
            except (OutOfMemory, InvalidParams):
                continue
            self._step_notice = (
                f"{failure} It was loaded {change}."
                if config.model_path == wanted.model_path
                else f"{failure} It was not loaded, {change}."
            )
            return model
        raise failure

    async def _open(self, config: EngineConfig) -> ChatModel:
        self._config = config
        return await self._open_model(config)


def _note_failure(loading: "asyncio.Future[ChatModel]") -> None:
    if not loading.cancelled() and isinstance(loading.exception(), InglenookError):
        logger.error("%s", loading.exception())
