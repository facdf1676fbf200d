"""The memory that a context will take, told before it is made."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.models.local import model_facts
from engine.backends.llama_cpp import memory_need
from engine.backends.llama_cpp.backend import LlamaBackend, draft_bytes
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.model_shape import WORD_BYTES
from engine.config import EngineConfig
from engine.errors import OutOfMemory
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

CHILD = """
import sys
from pathlib import Path
import psutil
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part

def read(num_cells, num_sequences, max_batch_tokens, kv_type):
    context = LlamaContext(
        model,
        num_cells=num_cells,
        num_sequences=num_sequences,
        max_batch_tokens=max_batch_tokens,
        kv_type=kv_type,
    )
    # The KV was written when it was made, and the buffers are as large for every batch.
    assert context.decode([Part(0, 0, [5] * max_batch_tokens, 1)]) is None
    context.logits(1)
    return context

model = LlamaModel(Path(sys.argv[1]))
# Whatever the first context of a process loads, and the weights, are not counted.
read(256, 1, 32, "f16").close()
before = psutil.Process().memory_info().rss
context = read(*map(int, sys.argv[2:5]), sys.argv[5])
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.model
@pytest.mark.parametrize(
    ("num_cells", "num_sequences", "max_batch_tokens", "kv_type"),
    [(2048, 8, 64, "f16"), (2048, 32, 512, "q8_0"), (8192, 32, 256, "f16")],
)
def test_a_context_takes_the_memory_that_was_foretold(
    starter: Path, num_cells: int, num_sequences: int, max_batch_tokens: int, kv_type: str
) -> None:
    arguments = [str(starter), *map(str, (num_cells, num_sequences, max_batch_tokens)), kv_type]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, timeout=300
    )
    assert child.returncode == 0, child.stderr[-2000:]
    model = LlamaModel(starter, facts_only=True)
    foretold = model.context_shape.num_bytes(
        num_cells=num_cells,
        num_ids=num_sequences + 1,
        max_batch_tokens=max_batch_tokens,
        kv_type="q8_0" if kv_type == "q8_0" else "f16",
    )
    model.close()
    assert int(child.stdout) == pytest.approx(foretold, rel=0.2)


def test_what_the_machine_has_no_room_for_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    little = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=100_000))
    monkeypatch.setattr(memory_need, "psutil", little)
    loaded: list[str] = []
    monkeypatch.setattr(bindings, "llama_model_load_from_file", lambda *_: loaded.append("loaded"))
    with pytest.raises(
        OutOfMemory, match="tiny needs .* GB of memory with a context of 256 tokens"
    ):
        LlamaBackend(EngineConfig(model_path=path, context_tokens=256))
    assert loaded == []


def test_weights_words_and_context_are_one_sum(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    shape = shape_of(check_chat_file(path))
    config = EngineConfig(model_path=path, context_tokens=512)
    context = shape.context.bytes_for(config, 1024)
    assert shape.memory_bytes(config) == shape.num_bytes + 267 * WORD_BYTES + context
    assert model_facts(config).memory_bytes == shape.memory_bytes(config)
    assert draft_bytes(config) == shape.memory_bytes(config)
