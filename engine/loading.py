"""From a configuration to a running engine."""

from dataclasses import dataclass

from engine.async_engine import AsyncEngine
from engine.backends.base import ModelInfo
from engine.config import EngineConfig
from engine.engine import Engine
from engine.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that answers: the engine's thread runs until `engine.close()`."""

    engine: AsyncEngine
    tokenizer: Tokenizer
    info: ModelInfo
    backend: str


def load(config: EngineConfig) -> LoadedModel:
    """Load the model and start its engine. Blocks for as long as the file takes.

    Raises the ModelError that says why the model cannot be used.
    """
    # Loading the library takes a while, and commands that need no model should not wait for it.
    from engine.backends.llama_cpp.backend import LlamaBackend

    backend = LlamaBackend(config)
    engine = AsyncEngine(Engine(backend, config), backend.max_request_tokens)
    return LoadedModel(engine, backend.tokenizer, backend.info, backend.kind)
