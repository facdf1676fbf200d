"""One model's way here: its files, what has come of them, and the note that lasts."""

import asyncio
import json
import re
from collections import deque
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Any

from app.models.hub import Offer, RemoteFile
from app.models.mmproj import own_mmproj
from app.models.part_file import PartFile
from app.private_file import write_private
from engine.backends.llama_cpp.split_file import model_name
from engine.errors import DownloadEnded, InglenookError

NOTE_ENDING = ".download"
LOCK_ENDING = ".lock"
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


class Way:
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
        Path(f"{self.note}{LOCK_ENDING}").unlink(missing_ok=True)

    def _speed(self) -> float:
        if self.state is not DownloadState.RUNNING or len(self._marks) < 2:
            return 0.0
        (then, before), (now, after) = self._marks[0], self._marks[-1]
        return max(0.0, (after - before) / (now - then)) if now > then else 0.0


def way_of(note: Path) -> Way | None:
    """What an earlier run left; None where it cannot be understood."""
    try:
        values: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        etags = [str(etag) for etag in values.pop("etags")]
        files = tuple(RemoteFile(**each) for each in values.pop("files"))
        offer = replace(Offer(**values, files=()), files=files)
        targets = targets_of(note.parent, offer)
        if len(etags) != len(files) or not files:
            return None
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        InglenookError,
    ):
        return None
    return Way(model_name(targets[0]), offer, targets, etags)


def targets_of(folder: Path, offer: Offer) -> list[Path]:
    """Where the files of a model go. Its multimodal part is named after the model, since makers
    call theirs alike."""
    targets = [folder / local_name(file.name) for file in offer.files]
    if offer.has_mmproj and len(targets) > 1:
        targets[-1] = own_mmproj(targets[0])
    return targets


def local_name(name: str) -> str:
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
