"""The model that answers: what it is loaded by, and what takes its place while the app runs.

    ModelInUse --changes--> ModelChoice --config--> ModelHolder --loads--> ChatModel

A choice that cannot be loaded is not kept: the old one answers on.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.models.choice import ModelChoice
from app.models.holder import ModelHolder
from app.models.local import LocalModel
from app.models.starter import starter_model
from app.settings import Settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.errors import InglenookError, ModelError, ModelNotFound, UsageError

if TYPE_CHECKING:
    from app.models.library import ModelLibrary


class ModelInUse:
    """Owned by the event loop. Changes the choice, and lets the holder load what is chosen.

    `is_busy` says whether something is being answered, `library` gives where models are deleted.
    """

    def __init__(
        self,
        choice: ModelChoice,
        holder: ModelHolder,
        library: Callable[[], "ModelLibrary"],
        is_busy: Callable[[], bool],
        *,
        is_safe: bool,
    ) -> None:
        self._choice = choice
        self._holder = holder
        self._library = library
        self._is_busy = is_busy
        self._is_safe = is_safe
        self._keeps_kv = False

    @property
    def choice(self) -> ModelChoice:
        """As it is now; another one takes its place with every change."""
        return self._choice

    @property
    def keeps_kv(self) -> bool:
        """What is read stays on the disk, for the next start."""
        return self._keeps_kv

    @property
    def wanted_config(self) -> EngineConfig:
        """With what it would be loaded now. Raises ModelNotFound, InvalidParams."""
        return self._choice.config(keeps_kv=self._keeps_kv, is_safe=self._is_safe)

    @property
    def name(self) -> str:
        """Of the one that is loaded, or else of the one that would be."""
        model = self._holder.model
        if model is not None:
            return model.name
        try:
            return self._choice.model_path.stem
        except ModelNotFound:
            return "no model"

    def save_settings(self, settings: Settings) -> None:
        save_settings(self._choice.paths.settings, settings)
        self._choice = replace(self._choice, settings=settings)

    def begin(self) -> None:
        """Load it in the background, with the KV of earlier runs."""
        self._keeps_kv = True
        self._holder.begin()

    async def reload(self) -> None:
        """Load the model again, with the settings as they are now.

        Refused while it is answering. Raises the sentence that says why it cannot be loaded.
        """
        await self._holder.settled()
        self._check_quiet("load the model again")
        await self._holder.replace()

    async def use(self, path: Path) -> str:
        """Let this model answer, from now on and at every start; what is loaded is freed first.

        Gives what the user should know of it. Raises the sentence that says why it cannot be used;
        then the old one answers on. Refused while it is answering.
        """
        # Reading a header needs the library, which other commands should not wait for.
        from engine.backends.llama_cpp.chat_file import check_chat_file

        await asyncio.to_thread(check_chat_file, path)
        model = "" if path == starter_model() else str(path)
        return await self._load_instead(
            replace(self._choice.settings, model=model), str(path), "", ""
        )

    async def use_adapters(self, adapters: Sequence[Adapter]) -> str:
        """Let these, and no others, change the model that answers, from now on and at every start.

        Gives what the user should know of it. Raises the sentence that says why they cannot be
        used; then it answers on as before. Refused while it is answering.
        """
        path = self._choice.model_path
        chosen = self._choice.settings.with_adapters(path, adapters)
        # Raises InvalidParams for too many of them.
        chosen.engine_config(path)
        wanted = self._choice.model, self._choice.mmproj
        return await self._load_instead(chosen, str(path), *wanted)

    async def remove(self, model: LocalModel) -> None:
        """Delete what was downloaded, forget what was added; not what answers."""
        if self._choice.model_path == model.path:
            raise UsageError(f"{model.name} is the model that answers: use another one first.")
        if model.path in [each.path for each in self._choice.used_adapters]:
            raise UsageError(
                f"{model.name} changes the model that answers: take it off that one first."
            )
        await asyncio.to_thread(self._library().remove, model)
        # Another model would be loaded with it later on, and fail.
        self.save_settings(self._choice.settings.without_adapter(model.path))
        if self._choice.settings.model in (str(model.path), model.name):
            self.save_settings(replace(self._choice.settings, model=""))

    async def free_when_idle(self, now: float) -> bool:
        """Free the model when nobody has asked anything for as long as the settings say. Gives
        whether it was freed; the next message loads it again."""
        if self._is_busy():
            self._holder.note_use(now)
        minutes = self._choice.settings.unload_after_minutes
        return minutes is not None and await self._holder.free_after(60 * minutes, now)

    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        """Let new budgets hold from now on, and at the next start."""
        self.save_settings(
            replace(self._choice.settings, kv_ram_bytes=ram_bytes, kv_disk_bytes=disk_bytes)
        )
        model = self._holder.model
        if model is not None:
            await model.loaded.engine.limit_kv(ram_bytes, disk_bytes)

    async def forget_kv(self) -> None:
        """Delete all that was read and kept, in memory and on the disk. Not while it answers."""
        self._check_quiet("delete what is stored")
        if self._holder.model is not None or self._keeps_kv:
            # One that was freed left its KV on the disk.
            await (await self._holder.get()).loaded.engine.forget_all()

    async def _load_instead(self, chosen: Settings, model: str, wanted: str, mmproj: str) -> str:
        """Load `model` by `chosen` in the place of what is loaded, if something is, and keep that
        choice; `wanted` and `mmproj` are what is named by a command afterwards."""
        before = self._choice
        if self._holder.is_begun:
            self._check_quiet("load the model again")
            # By its name, so that the starter does not take its place.
            self._choice = replace(before, settings=chosen, model=model, adapters=(), mmproj=mmproj)
            try:
                await self.reload()
            except InglenookError as error:
                self._choice = before
                with suppress(InglenookError):
                    await self.reload()
                raise ModelError(f"{error} {self.name} answers on.") from error
        self._choice = replace(before, model=wanted, adapters=(), mmproj=mmproj)
        self.save_settings(chosen)
        return self._holder.notice

    def _check_quiet(self, remedy: str) -> None:
        if self._is_busy():
            raise UsageError(
                "The model is answering: wait for the end of the answer or stop it, and then"
                f" {remedy}."
            )
