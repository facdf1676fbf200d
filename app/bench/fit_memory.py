"""What memory a model takes when it is loaded and has read something: run in a process of its own.

    what no file backs and did not exist before, and those pages of the model's file that a step
    touches; what was only read once, to be packed anew, the system can have back

Linux tells this in /proc; `python -m app.bench.fit_memory MODEL CONTEXT` prints the bytes.
"""

import re
import sys
from pathlib import Path

from app.models.starter import starter_model
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig

SELF = Path("/proc/self")
BATCH = 512
"""Tokens of a step, as many as one has at most, so that it uses all of its buffers."""
_KB = 1024


def main(model: Path, context_tokens: int) -> int:
    """Bytes. What the first model of a process loads besides itself is not counted."""
    starter = starter_model()
    if starter is not None:
        opened(starter, 2 * BATCH).close()
    before = anonymous_bytes()
    backend = opened(model, context_tokens)
    (SELF / "clear_refs").write_text("1")
    backend.kv_memory.decode([Part(0, BATCH, [5] * BATCH, 1)])
    backend.kv_memory.logits(1)
    taken = anonymous_bytes() - before + touched_bytes(model)
    backend.close()
    return taken


def opened(model: Path, context_tokens: int) -> LlamaBackend:
    """With the first step done, which touches what is made at the first use."""
    backend = LlamaBackend(EngineConfig(model_path=model, context_tokens=context_tokens, threads=1))
    backend.kv_memory.decode([Part(0, 0, [5] * BATCH, 1)])
    return backend


def anonymous_bytes() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", (SELF / "status").read_text())
    assert found is not None, "this system does not tell"
    return int(found[1]) * _KB


def touched_bytes(model: Path) -> int:
    """Of the file's pages, those that were used since the marks were cleared."""
    name = str(model.resolve())
    is_model, total = False, 0
    for line in (SELF / "smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_model = line.endswith(name)
        elif is_model and line.startswith("Referenced:"):
            total += int(line.split()[1]) * _KB
    return total


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), int(sys.argv[2])))
