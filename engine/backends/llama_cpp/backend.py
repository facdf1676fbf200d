"""The llama.cpp backend: one model, one context."""

import os

import psutil

from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.runner import LlamaRunner
from engine.config import DEFAULT_CONTEXT_TOKENS, EngineConfig


class LlamaBackend:
    """A GGUF model on the processor. Closed by the engine thread."""

    kind = "llama"

    def __init__(self, config: EngineConfig) -> None:
        self._model = LlamaModel(config.model_path)
        try:
            trained = self._model.trained_context
            kv_type = self._model.kv_shape.choose(config.kv_type)
            self.kv_memory = LlamaContext(
                self._model,
                num_cells=config.context_tokens or min(trained, DEFAULT_CONTEXT_TOKENS),
                num_sequences=config.max_sequences,
                max_batch_tokens=config.max_batch_tokens,
                kv_type=kv_type,
            )
        except BaseException:
            self._model.close()
            raise
        self.info = self._model.info(kv_type)
        self.tokenizer = self._model.vocabulary
        self.max_request_tokens = min(self.kv_memory.num_cells, trained)
        self.model_runner = LlamaRunner(
            self.kv_memory,
            config.threads or usable_cores(),
            adapt_threads=config.threads is None,
        )

    def close(self) -> None:
        self.kv_memory.close()
        self._model.close()


def usable_cores() -> int:
    """Physical cores, but no more than this process may run on (containers, taskset)."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
