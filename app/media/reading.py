"""The reading process from outside: a person's file in, a picture or a sound out, or a sentence."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from app.launch.child import as_stranger, own_command
from app.media.command import COMMAND
from engine.errors import EngineError, UsageError
from engine.media import MediaKind

PATIENCE_S = 60.0
MOST_FILE_BYTES = {MediaKind.IMAGE: 64_000_000, MediaKind.AUDIO: 400_000_000}
MEDIA_TYPES = {
    MediaKind.IMAGE: ("image/png", "image/jpeg"),
    MediaKind.AUDIO: ("audio/wav",),
}
"""What is kept of them."""
LARGEST = 100_000_000
"""Pixels or samples, and bytes of the content: more is nothing that we kept."""
NAMES = {MediaKind.IMAGE: "picture", MediaKind.AUDIO: "sound"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a file holds: `kept` is written by us and can be read again, `preview` is a small JPEG
    of a picture. A sound has `width` samples."""

    kept: bytes
    preview: bytes
    media_type: str
    width: int
    height: int


def take_in(data: bytes, kind: MediaKind, name: str) -> Taken:
    """Read a person's file. Blocks for as long as that takes. Raises UsageError."""
    most = MOST_FILE_BYTES[kind]
    if len(data) > most:
        raise UsageError(
            f"{name} has {len(data) / 1e6:,.0f} MB, and a {NAMES[kind]} may have"
            f" {most / 1e6:,.0f}: send a smaller one."
        )
    facts, kept, preview = _run({"do": "take in", "kind": kind.value}, data, name)
    media_type, width, height = (facts.get(key) for key in ("media_type", "width", "height"))
    if (
        media_type not in MEDIA_TYPES[kind]
        or not _is_whole(width, 1)
        or not _is_whole(height, 1)
        or width * height > LARGEST
    ):
        raise _nonsense(name)
    return Taken(kept=kept, preview=preview, media_type=media_type, width=width, height=height)


def open_kept(data: bytes, kind: MediaKind) -> bytes:
    """The pixels or the samples of what `take_in` kept. Blocks. Raises EngineError."""
    try:
        return _run({"do": "open", "kind": kind.value}, data, f"A stored {NAMES[kind]}").kept
    except UsageError as error:
        raise EngineError(str(error)) from error


class _Answer(NamedTuple):
    facts: Mapping[str, Any]
    kept: bytes
    preview: bytes


def _run(order: dict[str, str], data: bytes, name: str) -> _Answer:
    try:
        done = subprocess.run(
            [*own_command(), COMMAND],
            input=json.dumps(order).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            **as_stranger(),
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{name} could not be read within {PATIENCE_S:.0f} seconds: send another file."
        ) from error
    except OSError as error:
        raise UsageError(f"{name} could not be read ({error.strerror}): try again.") from error
    head, _, body = done.stdout.partition(b"\n")
    try:
        facts = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{name} ended the program that reads it ({done.returncode}), so it may be damaged:"
            " send another file."
        ) from error
    if not isinstance(facts, dict):
        raise _nonsense(name)
    if "refusal" in facts:
        raise UsageError(f"{name} cannot be used, because {facts['refusal']}: send another file.")
    kept, preview = facts.get("kept"), facts.get("preview")
    if not _is_whole(kept, 0) or not _is_whole(preview, 0):
        raise _nonsense(name)
    if len(body) != kept + preview:
        raise UsageError(f"{name} could not be read to its end: try again.")
    return _Answer(facts, body[:kept], body[kept:])


def _is_whole(value: object, least: int) -> TypeGuard[int]:
    # True is an int as well.
    return type(value) is int and value >= least


def _nonsense(name: str) -> UsageError:
    """Of a process that said what it should not: a file may have taken it over."""
    return UsageError(
        f"{name} made the program that reads it say what makes no sense, so it may be damaged: send"
        " another file."
    )
