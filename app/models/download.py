"""Models on their way here: begun, paused, gone on with and given up; none is lost by a reload.

NAME.gguf.part      what has come of each file
NAME.gguf.download  what it will be, so that it goes on after the end of the process
NAME.gguf           there only when every file of the model is whole and checked
"""

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Any

from filelock import FileLock, Timeout

from app.models.fetch import Fetch, settled
from app.models.hub import Offer, RemoteFile
from app.models.outside import Outside
from app.models.part_file import PartFile, check_room, free_bytes
from app.private_file import write_private
from engine.backends.llama_cpp.split_file import model_name
from engine.errors import DownloadEnded, DownloadError, InglenookError, UsageError

NOTE_ENDING = ".download"
_LOCK_ENDING = ".lock"
_SAFE_NAME = re.compile(r"[\w][\w.+ ()-]{0,200}\.gguf", re.IGNORECASE)
_SPEED_S = 5.0


class DownloadState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    """What has come is kept, and it can be gone on with."""
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One moment of one model's way. `message`: what went wrong, or empty."""

    name: str
    repo: str
    quantization: str
    state: DownloadState
    num_bytes: int
    total_bytes: int
    bytes_per_s: float = 0.0
    message: str = ""

    @property
    def seconds_left(self) -> float | None:
        if self.state is not DownloadState.RUNNING or self.bytes_per_s <= 0:
            return None
        return (self.total_bytes - self.num_bytes) / self.bytes_per_s


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
        self._ways: dict[str, _Way] = {}
        for note in sorted(folder.glob(f"*{NOTE_ENDING}")):
            way = _way_of(note)
            if way is not None:
                self._ways[way.name] = way

    def all(self) -> list[Download]:
        return [way.shown() for way in self._ways.values()]

    async def begin(self, offer: Offer) -> str:
        """Start it, or go on with it; gives its name. Raises what stands in the way."""
        targets = [self._folder / _local_name(file.name) for file in offer.files]
        name = model_name(targets[0])
        known = self._ways.get(name)
        if known is not None and known.task is not None:
            return name
        if all(target.exists() for target in targets):
            raise UsageError(f"{name} is here already: use it, or remove it first.")
        if known is None or not known.is_of(offer):
            # What lies there of another file must not become the beginning of this one.
            self._ways[name] = _Way(name, offer, targets, ["" for _ in targets], is_fresh=True)
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

    def _known(self, name: str) -> "_Way":
        way = self._ways.get(name)
        if way is None:
            raise UsageError(f"There is no download of {name}: it may have been given up.")
        return way

    async def _start(self, way: "_Way") -> None:
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

    async def _run(self, way: "_Way") -> None:
        lock = FileLock(f"{way.note}{_LOCK_ENDING}")
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

    async def _fetch(self, way: "_Way", index: int, part: PartFile) -> None:
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


class _Way:
    """One model's way. Owned by its Downloads."""

    def __init__(
        self,
        name: str,
        offer: Offer,
        targets: list[Path],
        etags: list[str],
        *,
        is_fresh: bool = False,
    ) -> None:
        self.name = name
        self.is_fresh = is_fresh
        self.offer = offer
        self.targets = targets
        self.etags = etags
        self.sizes = [part_size(target) for target in targets]
        self.state = DownloadState.PAUSED
        self.error: InglenookError | None = None
        self.task: asyncio.Task[None] | None = None
        self._marks: deque[tuple[float, int]] = deque()

    @property
    def note(self) -> Path:
        return self.targets[0].with_name(self.targets[0].name + NOTE_ENDING)

    def is_of(self, offer: Offer) -> bool:
        """Whether what has come belongs to this offer: the same files, by their sums if known."""

        def marks(of: Offer) -> list[tuple[str, int, str]]:
            return [(file.name, file.num_bytes, file.sha256) for file in of.files]

        return marks(self.offer) == marks(offer)

    def shown(self) -> Download:
        return Download(
            name=self.name,
            repo=self.offer.repo,
            quantization=self.offer.quantization,
            state=self.state,
            num_bytes=sum(self.sizes),
            total_bytes=self.offer.num_bytes,
            bytes_per_s=self._speed(),
            message="" if self.error is None else str(self.error),
        )

    def note_size(self, index: int, size: int) -> None:
        self.sizes[index] = size
        now = monotonic()
        self._marks.append((now, sum(self.sizes)))
        while now - self._marks[0][0] > _SPEED_S and len(self._marks) > 2:
            self._marks.popleft()

    def forget_speed(self) -> None:
        """What was so before a pause says nothing."""
        self._marks.clear()

    def note_etag(self, index: int, etag: str) -> None:
        if self.etags[index] != etag:
            self.etags[index] = etag
            self.keep_note()

    def keep_note(self) -> None:
        values = asdict(self.offer) | {"etags": self.etags}
        try:
            write_private(self.note, json.dumps(values, indent=1))
        except OSError as error:
            raise DownloadEnded(
                f"{self.note.parent} cannot be written ({error.strerror}): make room there, or make"
                " it writable."
            ) from error

    def delete(self) -> None:
        for target in self.targets:
            PartFile(target).path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
        Path(f"{self.note}{_LOCK_ENDING}").unlink(missing_ok=True)

    def _speed(self) -> float:
        if self.state is not DownloadState.RUNNING or len(self._marks) < 2:
            return 0.0
        (then, before), (now, after) = self._marks[0], self._marks[-1]
        return max(0.0, (after - before) / (now - then)) if now > then else 0.0


async def _end(way: _Way) -> None:
    task = way.task
    if task is None:
        return
    task.cancel()
    await asyncio.wait([task])


def _way_of(note: Path) -> _Way | None:
    """What an earlier run left; None where it cannot be understood."""
    try:
        values: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        etags = [str(etag) for etag in values.pop("etags")]
        files = tuple(RemoteFile(**each) for each in values.pop("files"))
        offer = replace(Offer(**values, files=()), files=files)
        targets = [note.with_name(_local_name(file.name)) for file in files]
        if len(etags) != len(files) or not files:
            return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, InglenookError):
        return None
    return _Way(model_name(targets[0]), offer, targets, etags)


def _local_name(name: str) -> str:
    """The file's own name, without folders: it may come from anybody."""
    last = name.rpartition("/")[2]
    if not _SAFE_NAME.fullmatch(last):
        raise DownloadEnded(f"{last!r} is not a name for a model file here: choose another model.")
    return last


def part_size(target: Path) -> int:
    """How much of it has come, or all of it when it is in its place."""
    for path in (target, PartFile(target).path):
        try:
            return path.stat().st_size
        except OSError:
            continue
    return 0
