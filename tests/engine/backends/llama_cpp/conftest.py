"""The starter model, loaded once for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.config import EngineConfig
from tests.engine.backends.llama_cpp.model_run import ModelRun


@pytest.fixture(scope="session")
def config(starter: Path) -> EngineConfig:
    return EngineConfig(model_path=starter, context_tokens=2048, max_sequences=8, max_running=4)


@pytest.fixture(scope="session")
def backend(config: EngineConfig) -> Iterator[LlamaBackend]:
    loaded = LlamaBackend(config)
    yield loaded
    loaded.close()


@pytest.fixture
def run(backend: LlamaBackend, config: EngineConfig) -> ModelRun:
    backend.kv_memory.accept_steps()
    backend.kv_memory.clear()
    return ModelRun(backend, config)
