"""The reading process from outside: a person's file in, a picture or a sound out, or a sentence."""

import json
import subprocess
from dataclasses import dataclass

from app.launch.child import no_console, own_command
from app.media.command import COMMAND
from engine.errors import EngineError, UsageError
from engine.media import MediaKind

PATIENCE_S = 60.0
MOST_FILE_BYTES = {MediaKind.IMAGE: 64_000_000, MediaKind.AUDIO: 400_000_000}
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
    facts, body = _run({"do": "take in", "kind": kind.value}, data, name)
    kept = int(facts["kept"])
    return Taken(
        kept=body[:kept],
        preview=body[kept:],
        media_type=str(facts["media_type"]),
        width=int(facts["width"]),
        height=int(facts["height"]),
    )


def open_kept(data: bytes, kind: MediaKind) -> bytes:
    """The pixels or the samples of what `take_in` kept. Blocks. Raises EngineError."""
    try:
        return _run({"do": "open", "kind": kind.value}, data, f"A stored {NAMES[kind]}")[1]
    except UsageError as error:
        raise EngineError(str(error)) from error


def _run(order: dict[str, str], data: bytes, name: str) -> tuple[dict[str, str | int], bytes]:
    try:
        done = subprocess.run(
            [*own_command(), COMMAND],
            input=json.dumps(order).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            **no_console(),
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
    except ValueError as error:
        raise UsageError(
            f"{name} ended the program that reads it ({done.returncode}), so it may be damaged:"
            " send another file."
        ) from error
    if "refusal" in facts:
        raise UsageError(f"{name} cannot be used, because {facts['refusal']}: send another file.")
    if len(body) != facts["kept"] + facts["preview"]:
        raise UsageError(f"{name} could not be read to its end: try again.")
    return facts, body
