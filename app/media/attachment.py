"""A picture or a sound that belongs to a message."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.media.reading import MOST_FILE_BYTES, open_kept, take_in
from engine.errors import UsageError
from engine.media import Media, MediaKind

AUDIO_SUFFIXES = (".wav", ".wave")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """`digest` is the SHA-256 of what `read` gives: the picture or sound as it is kept. It is
    called by other threads, may take a while, and may raise an InglenookError. `preview` is a small
    JPEG of a picture, and empty of a sound, which has `width` samples."""

    kind: MediaKind
    name: str
    media_type: str
    width: int
    height: int
    digest: str
    preview: bytes = field(repr=False)
    read: Callable[[], bytes] = field(compare=False, repr=False)

    @property
    def media(self) -> Media:
        """As the engine wants it; nothing is read before it is looked at."""
        read, kind = self.read, self.kind
        return Media(
            kind=kind,
            digest=bytes.fromhex(self.digest),
            width=self.width,
            height=self.height,
            load=lambda: open_kept(read(), kind),
        )


def attachment_of(data: bytes, kind: MediaKind, name: str) -> Attachment:
    """From the content of a person's file. Blocks. Raises UsageError."""
    taken = take_in(data, kind, name)
    kept = taken.kept
    return Attachment(
        kind=kind,
        name=name,
        media_type=taken.media_type,
        width=taken.width,
        height=taken.height,
        digest=hashlib.sha256(kept).hexdigest(),
        preview=taken.preview,
        read=lambda: kept,
    )


def attachment_from(path: Path, kind: MediaKind | None = None) -> Attachment:
    """From a person's file; without a `kind` its name tells. Blocks. Raises UsageError."""
    if kind is None:
        is_sound = path.suffix.lower() in AUDIO_SUFFIXES
        kind = MediaKind.AUDIO if is_sound else MediaKind.IMAGE
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise UsageError(f"{path.name} is no file: name a picture or a sound.")
        if size > MOST_FILE_BYTES[kind]:
            raise UsageError(
                f"{path.name} has {size / 1e6:,.0f} MB, and at most"
                f" {MOST_FILE_BYTES[kind] / 1e6:,.0f} are read: send a smaller file."
            )
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another file.") from error
    return attachment_of(data, kind, path.name)
