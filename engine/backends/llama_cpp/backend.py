"""The llama.cpp backend: one model, one context."""

from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.memory_need import memory_bytes
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.runner import LlamaRunner
from engine.config import DEFAULT_CONTEXT_TOKENS, EngineConfig
from engine.cores import usable_cores


class LlamaBackend:
    """A GGUF model on the processor. Closed by the engine thread."""

    kind = "llama"

    def __init__(self, config: EngineConfig, *, beside_bytes: int = 0) -> None:
        """`beside_bytes`: memory that something else will take, which must be there as well."""
        self._model = LlamaModel(config.model_path)
        try:
            trained = self._model.trained_context
            kv_type = self._model.kv_shape.choose(config.kv_type)
            self.kv_memory = LlamaContext(
                self._model,
                num_cells=num_cells_of(self._model, config),
                num_sequences=config.max_sequences,
                max_batch_tokens=config.max_batch_tokens,
                kv_type=kv_type,
                beside_bytes=beside_bytes,
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


def num_cells_of(model: LlamaModel, config: EngineConfig) -> int:
    return config.context_tokens or min(model.trained_context, DEFAULT_CONTEXT_TOKENS)


def draft_bytes(config: EngineConfig) -> int:
    """What a draft model will take in all, without loading its weights. Raises a ModelError."""
    model = LlamaModel(config.model_path, facts_only=True)
    try:
        needed = memory_bytes(
            model,
            num_cells=num_cells_of(model, config),
            num_sequences=config.max_sequences + 1,
            max_batch_tokens=config.max_batch_tokens,
            kv_type=model.kv_shape.choose(config.kv_type),
        )
        return model.info().num_bytes + needed
    finally:
        model.close()
