"""What a context would take, known before it is taken."""

from pathlib import Path
from typing import Any

from app.memory import Memory, given_back, memory_of
from engine.adapter import Adapter
from engine.config import EngineConfig
from engine.kv.store import KVUsage
from tests.fakes_model import FakeEngine, fake_chat_model


def memory(**changes: Any) -> Memory:
    facts: dict[str, Any] = {
        "model": "SmolLM2",
        "config": EngineConfig(model_path=Path("m.gguf")),
        "num_bytes": 98_000_000,
        "trained_context": 8192,
        "kv_bytes_per_token": 23_040,
        "max_request_tokens": 8192,
        "usage": KVUsage(ram_bytes=2_304_000, ram_budget=10**9, disk_budget=10**10),
        "available": 10**9,
    }
    return Memory(**facts | changes)


def test_the_memory_of_another_type_or_size_is_known_beforehand() -> None:
    now = memory(config=EngineConfig(model_path=Path("m.gguf"), kv_type="f16"))
    assert now.bytes_of(1000) == 23_040_000
    assert now.bytes_of(1000, "q8_0") == 12_240_000
    assert now.fits(16_384)
    assert not now.fits(65_536)
    assert now.fits(32_768, "q8_0")


def test_what_a_model_gives_back_is_not_counted_twice() -> None:
    """Its mapped file counts as free already; weights that were packed anew do not."""
    now = memory(config=EngineConfig(model_path=Path("m.gguf"), context_tokens=1000))
    context = 23_040_000
    assert given_back(now, private=320_000_000) == context
    assert given_back(now, private=300_000_000 + 60_000_000) == 60_000_000
    assert given_back(now, private=10**10) == 98_000_000 + context
    assert context <= given_back(now) <= 98_000_000 + context


def test_the_adapters_of_a_loaded_model_count_as_its_own(tmp_path: Path) -> None:
    file = tmp_path / "pirate.gguf"
    file.write_bytes(bytes(1000))
    loaded = fake_chat_model(FakeEngine()).loaded
    plain = EngineConfig(model_path=Path("m.gguf"))
    adapted = EngineConfig(model_path=Path("m.gguf"), adapters=(Adapter(file),))
    assert memory_of(loaded, adapted).num_bytes - memory_of(loaded, plain).num_bytes == 1000
