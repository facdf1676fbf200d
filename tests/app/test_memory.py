"""What a context would take, known before it is taken."""

from pathlib import Path
from typing import Any

import pytest

from app.memory import Memory, bytes_in_words
from engine.config import EngineConfig
from engine.kv.store import KVUsage


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


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (23_040, "23 kB"),
        (999_999, "1 MB"),
        (2_304_000, "2.3 MB"),
        (9_960_000, "10 MB"),
        (99_600_000, "100 MB"),
        (188_743_680, "189 MB"),
        (1.96e9, "2 GB"),
        (2.5e9, "2.5 GB"),
        (24e9, "24 GB"),
        (1.5e12, "1.5 TB"),
    ],
)
def test_bytes_are_said_in_decimal_units_and_as_short_as_can_be(
    num_bytes: float, words: str
) -> None:
    assert bytes_in_words(num_bytes) == words


def test_the_memory_of_another_type_or_size_is_known_beforehand() -> None:
    now = memory(config=EngineConfig(model_path=Path("m.gguf"), kv_type="f16"))
    assert now.bytes_of(1000) == 23_040_000
    assert now.bytes_of(1000, "q8_0") == 12_240_000
    assert now.fits(16_384)
    assert not now.fits(65_536)
    assert now.fits(32_768, "q8_0")
