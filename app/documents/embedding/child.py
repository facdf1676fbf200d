"""The embedding process: texts come in one after the other, their vectors go out.

    out  {"ready": facts of the model}, when the door is shut; or {"refused": sentence}, its end
    in   for each text one line of JSON: {"text", "is_query"}
    out  {"size"} and so many bytes, float32; or {"failed": sentence}

A model may come from anybody. So this process has opened its file and all that it needs before the
first text, and from then on it can open no other file and no connection. Passages are computed at
low priority; a question is waited for, and stands hardly behind the app.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from app.documents.child import own_answers, say
from app.door import shut
from engine.errors import EngineError, InglenookError

NICENESS = 15
ROOM_BYTES = 2_000_000_000
"""What the process may take beside twice the model's file."""


class Embeds(Protocol):
    """What gives a text its vector, of length 1."""

    def embed(self, text: str) -> NDArray[np.float32]: ...


def main(arguments: list[str]) -> int:
    orders, answers = sys.stdin.buffer, own_answers()
    try:
        facts, model, most_bytes = _opened(Path(arguments[0]))
    except InglenookError as error:
        say(answers, {"refused": str(error)})
        return 1
    except OSError as error:
        say(answers, {"refused": f"{arguments[0]} cannot be read ({error.strerror})."})
        return 1
    # The thread for passages begins now: later there may be no room for one.
    with ThreadPoolExecutor(1, initializer=_be_patient) as patient:
        patient.submit(int).result()
        shut(most_bytes)
        say(answers, {"ready": facts})
        serve(orders, answers, model, lambda text: patient.submit(model.embed, text).result())
    return 0


def serve(
    orders: BinaryIO,
    answers: BinaryIO,
    model: Embeds,
    patiently: Callable[[str], NDArray[np.float32]],
) -> None:
    """Answer until nothing more is asked."""
    while line := orders.readline():
        order = json.loads(line)
        try:
            vector = (model.embed if order["is_query"] else patiently)(order["text"])
        except EngineError as error:
            say(answers, {"failed": str(error)})
            continue
        data = vector.astype("<f4").tobytes()
        say(answers, {"size": len(data)}, data)


def _opened(path: Path) -> tuple[dict[str, object], Embeds, int]:
    """Raises ModelError, OSError."""
    # It brings llama.cpp, which only this process needs here.
    from engine.backends.llama_cpp.embedding_model import EmbeddingModel

    model = EmbeddingModel(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
    facts = {**asdict(model.info), "pooling": model.info.pooling.name.lower(), "sha256": digest}
    # All that a first text brings is there before the door is shut.
    model.embed("one text")
    return facts, model, 2 * size + ROOM_BYTES


def _be_patient() -> None:
    if sys.platform == "linux":
        # There each thread has a niceness of its own. Elsewhere the whole process stands behind the
        # app, as everywhere, by what has started it.
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
