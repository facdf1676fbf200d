"""Models on their way here: begun, paused, gone on with and given up; none is lost by a reload.

NAME.gguf.part      what has come of each file
NAME.gguf.download  what it will be, so that it goes on after the end of the process
NAME.gguf           there only when every file of the model is whole and checked
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from app.models.fetch import Fetch, settled
from app.models.hub import Offer
from app.models.outside import Outside
from app.models.part_file import PartFile, check_room, free_bytes
from app.models.way import (
    LOCK_ENDING,
    NOTE_ENDING,
    Download,
    DownloadState,
    Way,
    part_size,
    targets_of,
    way_of,
)
from engine.backends.llama_cpp.split_file import model_name
from engine.errors import DownloadEnded, DownloadError, InglenookError, UsageError


class Downloads:
    """Owned by the event loop. `on_done` hears of each model that is there now."""

    def __init__(
        self,
        folder: Path,
        outside: Outside,
        on_done: Callable[[Path, Offer], None],
        *,
        free: Callable[[Path], int] = free_bytes,
        wait_s: float = 1.0,
    ) -> None:
        self._folder = folder
        self._outside = outside
        self._on_done = on_done
        self._free = free
        self._wait_s = wait_s
        self._ways: dict[str, Way] = {}
        for note in sorted(folder.glob(f"*{NOTE_ENDING}")):
            way = way_of(note)
            if way is not None:
                self._ways[way.name] = way

    def all(self) -> list[Download]:
        return [way.shown() for way in self._ways.values()]

    async def begin(self, offer: Offer) -> str:
        """Start it, or go on with it; gives its name. Raises what stands in the way."""
        targets = targets_of(self._folder, offer)
        name = model_name(targets[0])
        known = self._ways.get(name)
        if known is not None and known.task is not None:
            return name
        if all(target.exists() for target in targets):
            raise UsageError(f"{name} is here already: use it, or remove it first.")
        if known is None or not known.is_of(offer):
            # What lies there of another file must not become the beginning of this one.
            self._ways[name] = Way(name, offer, targets, ["" for _ in targets], is_fresh=True)
        await self._start(self._ways[name])
        return name

    async def resume(self, name: str) -> None:
        way = self._known(name)
        if way.task is None:
            await self._start(way)

    async def pause(self, name: str) -> None:
        """What has come is kept."""
        way = self._known(name)
        await _end(way)
        if way.state is DownloadState.RUNNING:
            way.state = DownloadState.PAUSED

    async def cancel(self, name: str) -> None:
        """Give it up, and delete what has come."""
        way = self._known(name)
        await _end(way)
        if way.state is not DownloadState.DONE:
            way.delete()
        self._ways.pop(name, None)

    async def wait(self, name: str, on_change: Callable[[Download], None]) -> Path:
        """Its file, once it is there; hears of it twice a second. Raises what it failed of."""
        way = self._known(name)
        while way.task is not None:
            on_change(way.shown())
            await asyncio.wait([way.task], timeout=0.5)
        on_change(way.shown())
        if way.error is not None:
            raise way.error
        if way.state is not DownloadState.DONE:
            raise DownloadError(f"The download of {name} was paused: go on with it later.")
        return way.targets[0]

    async def close(self) -> None:
        """Pause all."""
        for way in list(self._ways.values()):
            await self.pause(way.name)

    def _known(self, name: str) -> Way:
        way = self._ways.get(name)
        if way is None:
            raise UsageError(f"There is no download of {name}: it may have been given up.")
        return way

    async def _start(self, way: Way) -> None:
        # Before anything is awaited: two callers must not start it twice.
        way.state, way.error = DownloadState.RUNNING, None
        way.forget_speed()
        way.sizes = [part_size(target) for target in way.targets]
        try:
            check_room(self._folder, max(0, way.offer.num_bytes - sum(way.sizes)), self._free)
            way.keep_note()
        except InglenookError as error:
            way.state, way.error = DownloadState.FAILED, error
            raise
        way.task = asyncio.create_task(self._run(way))

    async def _run(self, way: Way) -> None:
        lock = FileLock(f"{way.note}{LOCK_ENDING}")
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise DownloadEnded(
                    f"Another Inglenook is downloading {way.name}: wait until it is done."
                ) from error
            parts = [PartFile(target, self._free) for target in way.targets]
            for part in parts if way.is_fresh else ():
                await settled(part.restart)
            way.is_fresh = False
            for index, part in enumerate(parts):
                if part.target.exists():
                    # Of a model in several files, put in its place just before the process ended.
                    way.note_size(index, part.target.stat().st_size)
                    continue
                await self._fetch(way, index, part)
            # The first part stands for the model, so it comes last.
            for part in reversed(parts):
                if not part.target.exists():
                    await settled(part.finish)
            self._on_done(way.targets[0], way.offer)
            way.state = DownloadState.DONE
            way.note.unlink(missing_ok=True)
        except InglenookError as error:
            way.state, way.error = DownloadState.FAILED, error
        except OSError as error:
            way.state = DownloadState.FAILED
            way.error = DownloadError(f"{way.name} could not be stored ({error.strerror}).")
        finally:
            way.task = None
            lock.release()
            if way.state is DownloadState.DONE:
                Path(lock.lock_file).unlink(missing_ok=True)

    async def _fetch(self, way: Way, index: int, part: PartFile) -> None:
        file = way.offer.files[index]
        fetch = Fetch(
            outside=self._outside,
            file=file,
            part=part,
            why=f"download of {way.name}",
            on_size=lambda size: way.note_size(index, size),
            on_etag=lambda etag: way.note_etag(index, etag),
            wait_s=self._wait_s,
        )
        await fetch.run(way.etags[index])


async def _end(way: Way) -> None:
    task = way.task
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])
