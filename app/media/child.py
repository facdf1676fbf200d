"""The reading process: one file of a person comes in, what it holds goes out, and it ends.

    in   one line of JSON: {"do": "take in" | "open", "kind": "image" | "audio"}, then the file
    out  one line of JSON: the facts and the lengths of what follows, or why there is nothing

A file may be made to harm whoever reads it. So this process has little memory and time, and from
the moment it sees the file it can open no other one and no connection.
"""

import json
import sys
from collections.abc import Mapping
from typing import BinaryIO

from app.door import allow_seconds, shut

MOST_BYTES = 1_500_000_000
MOST_CPU_SECONDS = 30


def main() -> int:
    # All that is needed later is imported before the door is shut.
    from app.media import picture, sound
    from app.media.refusal import Refusal

    shut(MOST_BYTES)
    allow_seconds(MOST_CPU_SECONDS)
    order = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    is_picture = order["kind"] == "image"
    facts: Mapping[str, object]
    try:
        if order["do"] == "take in":
            facts, kept, preview = (picture if is_picture else sound).take_in(data)
        else:
            facts, preview = {}, b""
            kept = picture.pixels(data) if is_picture else sound.samples(data)
    except Refusal as error:
        say(sys.stdout.buffer, {"refusal": str(error)})
        return 0
    except MemoryError:
        say(sys.stdout.buffer, {"refusal": "it takes too much memory to read"})
        return 0
    say(sys.stdout.buffer, {**facts, "kept": len(kept), "preview": len(preview)}, kept, preview)
    return 0


def say(out: BinaryIO, facts: Mapping[str, object], *parts: bytes) -> None:
    out.write(json.dumps(facts).encode() + b"\n")
    for part in parts:
        out.write(part)
    out.flush()
