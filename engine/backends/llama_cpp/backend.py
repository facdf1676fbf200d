"""The llama.cpp backend: one model, its adapters, its multimodal part, one context."""

import logging
from dataclasses import replace

from engine.backends.llama_cpp.adapter import LlamaAdapter
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.media_reader import MediaReader
from engine.backends.llama_cpp.memory_need import check_model
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.runner import LlamaRunner
from engine.config import EngineConfig
from engine.cores import usable_cores
from engine.errors import ModelError

logger = logging.getLogger(__name__)


class LlamaBackend:
    """A GGUF model on the processor. Closed by the engine thread."""

    kind = "llama"

    def __init__(self, config: EngineConfig, *, beside_bytes: int = 0) -> None:
        """`beside_bytes`: memory that something else will take, which must be there as well.

        A multimodal part that cannot be used leaves a model that reads text: `info` says why.
        """
        self._model = LlamaModel(
            config.model_path, check=lambda shape: check_model(shape, config, beside_bytes)
        )
        try:
            trained = self._model.trained_context
            # Before the context is made, which has room for what it finds.
            adapters = [LlamaAdapter(each, self._model) for each in config.acting_adapters]
            kv_type = self._model.kv_shape.choose(config.kv_type)
            self.media, refusal = self._open_media(config)
            self.kv_memory = LlamaContext(
                self._model,
                num_cells=config.num_cells(trained),
                num_sequences=config.max_sequences,
                max_batch_tokens=config.max_batch_tokens,
                kv_type=kv_type,
                beside_bytes=beside_bytes,
                adapters=adapters,
            )
        except BaseException:
            self._model.close()
            raise
        info = self._model.info(kv_type)
        # What answered is the model with its adapters, wherever a name stands.
        names = [info.name, *[each.name for each in config.acting_adapters]]
        self.info = replace(
            info,
            name=" + ".join(names),
            reads_images=self.media is not None and self.media.reads_images,
            reads_audio=self.media is not None and self.media.reads_audio,
            media_refusal=refusal,
        )
        self.tokenizer = self._model.vocabulary
        self.max_request_tokens = min(self.kv_memory.num_cells, trained)
        self.model_runner = LlamaRunner(
            self.kv_memory,
            config.threads or usable_cores(),
            adapt_threads=config.threads is None,
            media=self.media,
        )

    def _open_media(self, config: EngineConfig) -> tuple[MediaReader | None, str]:
        """The reader of pictures and sounds, or why there is none."""
        if config.mmproj_path is None:
            return None, ""
        try:
            reader = MediaReader(
                config.mmproj_path,
                self._model,
                max_batch_tokens=config.max_batch_tokens,
                max_running=config.max_running,
                threads=config.threads or usable_cores(),
            )
        except ModelError as error:
            logger.warning("%s", error)
            return None, str(error)
        return reader, ""

    def close(self) -> None:
        if self.media is not None:
            self.media.close()
        self.kv_memory.close()
        self._model.close()


def draft_bytes(config: EngineConfig) -> int:
    """What a draft model will take in all, without loading its weights. Raises a ModelError."""
    model = LlamaModel(config.model_path, facts_only=True)
    try:
        return model.shape.memory_bytes(config)
    finally:
        model.close()
