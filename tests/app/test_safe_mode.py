"""Safe mode takes less of everything that can be at fault, and nothing from the disk."""

import os
from pathlib import Path

import pytest

from app.launch.start_facts import StartFacts
from app.paths import Paths
from app.safe_mode import NO_GRAPHICS_CARD, leave_graphics_card, safe_config
from app.services import Services
from app.settings import Settings, save_settings
from engine.adapter import Adapter
from engine.config import EngineConfig

LARGE = EngineConfig(
    model_path=Path("m.gguf"),
    context_tokens=32768,
    max_batch_tokens=2048,
    kv_type="q8_0",
    kv_ram_bytes=10**9,
    kv_folder=Path("kv"),
    draft_model_path=Path("d.gguf"),
    adapters=(Adapter(Path("a.gguf")),),
)


def test_there_is_less_of_everything() -> None:
    safe = safe_config(LARGE)
    assert safe.model_path == LARGE.model_path
    assert safe.context_tokens == 2048
    assert safe.max_batch_tokens < LARGE.max_batch_tokens
    assert safe.max_running < safe.max_sequences < LARGE.max_sequences
    assert (safe.kv_folder, safe.draft_model_path, safe.kv_ram_bytes) == (None, None, 0)
    assert safe.adapters == ()
    assert not safe.speculate and not safe.read_forced


def test_a_context_that_is_smaller_already_stays() -> None:
    small = EngineConfig(model_path=Path("m.gguf"), context_tokens=512, max_batch_tokens=64)
    assert safe_config(small).context_tokens == 512
    assert safe_config(small).max_batch_tokens == 64


async def test_the_services_hold_the_model_so_and_the_settings_stay(paths: Paths) -> None:
    saved = Settings(model="/m.gguf", draft_model="/d.gguf", context_tokens=32768)
    save_settings(paths.settings, saved)
    services = Services(paths, start_facts=StartFacts(is_safe=True))
    config = services.engine_config
    assert (config.context_tokens, config.draft_model_path) == (2048, None)
    assert services.settings == saved
    await services.close()


def test_no_library_finds_a_graphics_card(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NO_GRAPHICS_CARD:
        monkeypatch.setenv(name, "0")
    leave_graphics_card()
    assert {name: os.environ[name] for name in NO_GRAPHICS_CARD} == NO_GRAPHICS_CARD
