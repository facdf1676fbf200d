"""The type of KV: what suits a model, what is impossible, and what it takes."""

from pathlib import Path

import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig
from engine.errors import InvalidParams
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

# 64 KiB a token in f16, and one block more.
LIGHT, HEAVY = 32 * 1024, 32 * 1024 + 32


@pytest.mark.parametrize(
    ("num_numbers", "head_size", "is_exact", "expected"),
    [
        (LIGHT, 128, True, "f16"),
        (HEAVY, 128, True, "q8_0"),
        (HEAVY, 80, True, "f16"),
        (HEAVY, 128, False, "f16"),
    ],
    ids=["light", "heavy", "heavy without room for a block", "heavy as an upper bound"],
)
def test_heavy_kv_is_kept_in_half_the_memory_where_that_is_possible(
    num_numbers: int, head_size: int, is_exact: bool, expected: str
) -> None:
    shape = KVShape(num_numbers, frozenset([head_size]), is_exact)
    assert shape.choose("auto") == expected
    assert shape.choose("f16") == "f16"


def test_what_the_heads_have_no_room_for_is_one_sentence() -> None:
    shape = KVShape(LIGHT, frozenset([128, 80]), True)
    with pytest.raises(InvalidParams, match=r"have 80 and 128 numbers.*multiple of 32: choose f16"):
        shape.choose("q8_0")
    assert KVShape(LIGHT, frozenset([128, 96]), True).choose("q8_0") == "q8_0"


def test_a_kv_type_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidParams, match="auto, f16, q8_0, got 'q4_0'"):
        EngineConfig(model_path=Path("model.gguf"), kv_type="q4_0")


@pytest.mark.parametrize(("kv_type", "num_bytes"), [("auto", 512), ("f16", 512), ("q8_0", 272)])
def test_the_figure_is_that_of_the_cells(tmp_path: Path, kv_type: str, num_bytes: int) -> None:
    """Two layers of 64 numbers each for K and V, and what a longer export takes."""
    path = write_tiny_model(tmp_path / "tiny.gguf")
    backend = LlamaBackend(
        EngineConfig(model_path=path, context_tokens=256, kv_type=kv_type, threads=1)
    )
    assert backend.info.kv_bytes_per_token == num_bytes
    assert backend.kv_memory.decode([Part(0, 0, [5] * 64, 0)]) is None
    short, long = backend.kv_memory.export(0, 0, 32), backend.kv_memory.export(0, 0, 64)
    assert short is not None and long is not None
    # A position, a count and a sequence beside them, of four bytes each.
    assert len(long) - len(short) == 32 * (num_bytes + 12)
    backend.close()
