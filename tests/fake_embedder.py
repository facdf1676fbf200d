"""An embedding process without a model: a text's vector counts its words.

The "model" is a file of JSON with the facts that a real process would say. A text with DIE ends the
process, one with DIE ONCE only the first such, one with REFUSE is refused, one with STUCK is never
computed; a model whose facts have "refused" is refused at the start. Words joined by "=" in `same`
of the facts count as one.
"""

import hashlib
import json
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.documents.child import say
from app.documents.embedding.child import serve
from app.documents.stop_words import STOP_WORDS
from engine.errors import EngineError

ROOT = Path(__file__).parent.parent
COMMAND = (sys.executable, "-m", "tests.fake_embedder")
WIDTH = 512


def write_fake_model(path: Path, **facts: Any) -> Path:
    usual = {
        "name": path.stem,
        "architecture": "fake",
        "width": WIDTH,
        "pooling": "mean",
        "num_words": 30_000,
        "wants_normal": False,
    }
    path.write_text(json.dumps({**usual, **facts}))
    return path


class FakeModel:
    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self._path = path
        self._same = facts.get("same", {})
        self._text_s = facts.get("text_s", 0.0)

    def embed(self, text: str) -> NDArray[np.float32]:
        time.sleep(self._text_s)
        mark = self._path.with_suffix(".died")
        if "DIE" in text and not ("DIE ONCE" in text and mark.exists()):
            mark.touch()
            sys.exit(3)
        if "STUCK" in text:
            time.sleep(3600)
        if "REFUSE" in text:
            raise EngineError("This text is refused.")
        with self._path.with_suffix(".asked").open("a") as file:
            file.write(json.dumps(text) + "\n")
        return bag(text, self._same)


def bag(text: str, same: dict[str, str]) -> NDArray[np.float32]:
    vector = np.full(WIDTH, 1e-3, np.float32)
    for word in text.lower().replace("?", " ").replace(".", " ").split():
        if word in STOP_WORDS:
            continue
        vector[zlib.crc32(same.get(word, word).encode()) % WIDTH] += 1
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def asked(path: Path) -> list[str]:
    """What the processes with this model have computed."""
    file = path.with_suffix(".asked")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> None:
    path = Path(sys.argv[1])
    answers = sys.stdout.buffer
    if not path.exists():
        say(answers, {"refused": f"There is no model file at {path}."})
        return
    facts = json.loads(path.read_text())
    if "refused" in facts:
        say(answers, {"refused": facts["refused"]})
        return
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    say(answers, {"ready": {**facts, "sha256": digest}})
    model = FakeModel(path, facts)
    serve(sys.stdin.buffer, answers, model, model.embed)


if __name__ == "__main__":
    main()
