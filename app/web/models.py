"""The models, for the page's sheet: what is here, what can come, and what is to be done with it.

No other site reaches this: the guard refuses those, and what changes something or asks another
machine is taken only with the page's own Origin.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from app.models.catalog import catalog
from app.models.drop import Drop
from app.settings import ADAPTERS, OWN
from app.ui import models as words
from app.ui.adapters import chosen
from app.ui.room import Services
from app.web.asked import path_typed, text_of
from app.web.desk import Action, add_doors, answered
from engine.errors import ModelNotFound, UsageError


def models_router(services: Services) -> APIRouter:
    """`GET /_app/models` and what else there is to see, `POST /_app/models/ACTION`."""
    router = APIRouter(prefix="/_app/models")
    desk = ModelDesk(services)

    @router.get("")
    async def here() -> Response:
        return await answered(desk.here())

    @router.get("/downloads")
    async def downloads() -> Response:
        return JSONResponse(words.downloads(services.library))

    @router.get("/available")
    async def available() -> Response:
        return await answered(desk.available())

    @router.get("/connections")
    async def connections() -> Response:
        return JSONResponse(words.connection_rows(services.library.connections.all()))

    add_doors(router, desk)
    return router


class ModelDesk:
    """What can be asked for. Owned by the event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._drops = services.library.drops

    def actions(self) -> dict[str, Action]:
        return {
            "measure": self.measure,
            "search": self.search,
            "offers": self.offers,
            "download": self.download,
            "pause": self.pause,
            "resume": self.resume,
            "cancel": self.cancel,
            "add": self.add,
            "announce": self.announce,
            "use": self.use,
            "remove": self.remove,
            "own": self.keep_own,
            "adapters": self.use_adapters,
        }

    async def here(self) -> dict[str, Any]:
        services, library = self._services, self._services.library
        # First: of one that ends meanwhile the page asks again, when it is known as downloaded.
        coming = words.downloads(library)
        found = await library.here()
        try:
            in_use, adapters = services.model_path, services.adapters
        except ModelNotFound:
            return words.here(found, library, services.settings, coming)
        return words.here(found, library, services.settings, coming, in_use, adapters)

    async def available(self) -> list[dict[str, Any]]:
        return words.available(catalog(), self._services.library.available(catalog()))

    async def measure(self, given: dict[str, Any]) -> dict[str, Any]:
        """Find out how fast this machine is: some seconds, once."""
        await self._services.library.measure_pace()
        return await self.here()

    async def search(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        return words.found_rows(await self._services.library.search(text_of(given, "text")))

    async def offers(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        library = self._services.library
        return words.offer_rows(await library.offers(text_of(given, "name")), library)

    async def download(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        library = self._services.library
        await library.download(text_of(given, "name"), str(given.get("quantization") or ""))
        return words.downloads(library)

    async def pause(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        await self._services.library.downloads.pause(text_of(given, "name"))
        return words.downloads(self._services.library)

    async def resume(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        await self._services.library.downloads.resume(text_of(given, "name"))
        return words.downloads(self._services.library)

    async def cancel(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        await self._services.library.downloads.cancel(text_of(given, "name"))
        return words.downloads(self._services.library)

    async def add(self, given: dict[str, Any]) -> dict[str, Any]:
        """A path on this machine, or its address; the file stays where it is."""
        path = path_typed(given, "path")
        await asyncio.to_thread(self._services.library.add, path)
        return await self.here()

    async def announce(self, given: dict[str, Any]) -> dict[str, Any]:
        """A file that will be dropped: what stands in its way is said before it is sent."""
        num_bytes, beginning = given.get("num_bytes"), given.get("beginning")
        if not isinstance(num_bytes, int) or not isinstance(beginning, str):
            raise UsageError("It is not known what will come: choose the file again.")
        drop = Drop.of(text_of(given, "name"), num_bytes)
        drop.check_beginning(beginning.encode("latin-1", "replace"))
        self._drops.check(drop)
        return {}

    async def drop(self, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> dict[str, Any]:
        await self._drops.take(Drop.of(name, num_bytes), pieces)
        return await self.here()

    async def use(self, given: dict[str, Any]) -> dict[str, Any]:
        model = self._services.library.find(text_of(given, "name"))
        return {"notice": await self._services.model.use(model.path)}

    async def remove(self, given: dict[str, Any]) -> dict[str, Any]:
        """Asks first: without `is_sure` it only says what would be done."""
        library = self._services.library
        model = library.find(text_of(given, "name"))
        question = library.check_removal(model)
        if given.get("is_sure") is not True:
            return {"question": question, "path": str(model.path)}
        if given.get("path", str(model.path)) != str(model.path):
            # A name passes on to the next of its kind where a file is gone.
            raise UsageError(f"{model.name} is another model by now: look at the list again.")
        await self._services.model.remove(model)
        return await self.here()

    async def use_adapters(self, given: dict[str, Any]) -> dict[str, Any]:
        """What changes the model in use from now on; it is loaded anew."""
        return {"notice": await self._services.model.use_adapters(chosen(given.get("adapters")))}

    async def keep_own(self, given: dict[str, Any]) -> dict[str, Any]:
        """What one model is loaded with from its next loading on; what is empty is as for all."""
        model = self._services.library.find(text_of(given, "name"))
        own = {name: given[name] for name in OWN if given.get(name) not in (None, "")}
        if any(type(value) is not OWN[name] for name, value in own.items()):
            raise UsageError("These choices are not numbers and names: choose them anew.")
        settings = self._services.settings
        # Those are chosen apart from this, and stay.
        adapters = settings.by_model.get(str(model.path), {}).get(ADAPTERS)
        if adapters:
            own[ADAPTERS] = adapters
        by_model = {**settings.by_model, str(model.path): own}
        changed = replace(
            settings, by_model={path: each for path, each in by_model.items() if each}
        )
        # Raises InvalidParams for what no model could be loaded with.
        changed.engine_config(model.path)
        self._services.save_settings(changed)
        return await self.here()
