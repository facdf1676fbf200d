"""Open a GGUF file with llama.cpp, or say in one sentence why that is impossible."""

import ctypes
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from engine.backends.base import ModelInfo
from engine.backends.llama_cpp.chat_file import check_chat_file, num_file_bytes
from engine.backends.llama_cpp.gguf_file import REMEDY
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.backends.llama_cpp.kv_type import KVDimensions, KVShape, KVType
from engine.backends.llama_cpp.library import ModelHandle, bindings, collected_log
from engine.backends.llama_cpp.model_shape import ContextShape, ModelShape
from engine.backends.llama_cpp.split_file import model_name
from engine.backends.llama_cpp.vocabulary import Vocabulary
from engine.errors import (
    ModelDamaged,
    ModelError,
    ModelUnsupported,
    OutOfMemory,
)

SAMPLING_KEYS = (
    "sequence",
    "temp",
    "top_k",
    "top_p",
    "min_p",
    "xtc_probability",
    "xtc_threshold",
    "penalty_last_n",
    "penalty_repeat",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
)
"""What a file may say of how to sample: llama.cpp's `general.sampling.*`."""


class LlamaModel:
    """A model file in memory: its facts and its vocabulary.

    `close` lets go of it; it is freed when its vocabulary is no longer used either.
    """

    def __init__(
        self,
        path: Path,
        *,
        facts_only: bool = False,
        check: Callable[[ModelShape], None] = lambda shape: None,
    ) -> None:
        """`check` may refuse the model by its measures, before its weights are read."""
        self.headers = check_chat_file(path)
        self.shape = shape_of(self.headers)
        check(self.shape)
        params = bindings.llama_model_default_params()
        # Mapped and not repacked, even a large file opens at once.
        params.use_extra_bufts = not facts_only
        params.n_gpu_layers = 0
        with collected_log() as log:
            pointer = bindings.llama_model_load_from_file(os.fsencode(path), params)
            if not pointer:
                raise load_error(path, log)
        self.path = path
        self._handle: ModelHandle | None = ModelHandle(pointer)
        try:
            self._check_supported()
            self.vocabulary = Vocabulary(self._handle)
        except BaseException:
            self.close()
            raise

    @property
    def pointer(self) -> Any:
        return self.handle.pointer

    @property
    def handle(self) -> ModelHandle:
        """To be held by whoever may use the model after it was closed."""
        assert self._handle is not None, "the model was closed"
        return self._handle

    @property
    def is_recurrent(self) -> bool:
        """True where the state of a sequence cannot be cut at a position."""
        return bool(
            bindings.llama_model_is_recurrent(self.pointer)
            or bindings.llama_model_is_hybrid(self.pointer)
        )

    @property
    def is_hybrid(self) -> bool:
        """True where some layers are recurrent and others attend."""
        return bool(bindings.llama_model_is_hybrid(self.pointer))

    @property
    def window_tokens(self) -> int:
        """How far back the layers with a sliding window look; 0: there are none."""
        return int(bindings.llama_model_n_swa(self.pointer))

    @property
    def trained_context(self) -> int:
        return int(bindings.llama_model_n_ctx_train(self.pointer))

    @property
    def architecture(self) -> str:
        return self.metadata("general.architecture") or "unknown"

    @property
    def width(self) -> int:
        """How many numbers go from layer to layer for each token."""
        return int(bindings.llama_model_n_embd(self.pointer))

    @property
    def input_width(self) -> int:
        """How many numbers stand for a token, or for a place of a picture, that is read."""
        return int(bindings.llama_model_n_embd_inp(self.pointer))

    @property
    def widest_layer(self) -> int:
        """How many numbers a feed-forward layer has in the middle, for each token."""
        found = self.metadata(f"{self.architecture}.feed_forward_length") or ""
        # A model whose layers differ has a list here, which llama.cpp does not spell out.
        return int(found) if found.isdecimal() else 4 * self.width

    @property
    def kv_dimensions(self) -> KVDimensions:
        """Of its first layer; there are models whose layers differ."""
        num_heads = bindings.llama_model_n_head(self.pointer)
        head_size = self.width // max(1, num_heads)
        prefix = f"{self.architecture}.attention"
        return KVDimensions(
            num_layers=int(bindings.llama_model_n_layer(self.pointer)),
            # None in the first layer means that it is a recurrent one.
            num_heads=int(bindings.llama_model_n_head_kv(self.pointer) or num_heads),
            key_size=int(self.metadata(f"{prefix}.key_length") or head_size),
            value_size=int(self.metadata(f"{prefix}.value_length") or head_size),
        )

    @property
    def kv_shape(self) -> KVShape:
        each = self.kv_dimensions
        prefix = f"{self.architecture}.attention"
        others = (self.metadata(f"{prefix}.{name}_length_swa") for name in ("key", "value"))
        sizes = [each.key_size, each.value_size, *(int(size) for size in others if size)]
        return KVShape(each.num_numbers, frozenset(sizes), is_exact=not self.is_recurrent)

    @property
    def context_shape(self) -> ContextShape:
        return ContextShape(
            width=self.width,
            widest_layer=self.widest_layer,
            num_words=self.vocabulary.num_tokens,
            window_tokens=self.window_tokens,
            kv=self.kv_shape,
        )

    def info(self, kv_type: KVType | None = None) -> ModelInfo:
        """Its facts; KV counted in `kv_type`, or else in what suits the model."""
        shape = self.kv_shape
        template: bytes | None = bindings.llama_model_chat_template(self.pointer, None)
        return ModelInfo(
            # What a file calls itself is often a training run; people know its file name.
            name=self._name(),
            architecture=self.architecture,
            num_parameters=int(bindings.llama_model_n_params(self.pointer)),
            quantization=self._quantization(),
            trained_context=self.trained_context,
            num_bytes=int(bindings.llama_model_size(self.pointer)),
            kv_bytes_per_token=shape.bytes_per_token(kv_type or shape.choose("auto")),
            chat_template=template.decode("utf-8", "replace") if template else None,
            bos_text=self.vocabulary.bos_text,
            eos_text=self.vocabulary.eos_text,
            sampling={
                name: found
                for name in SAMPLING_KEYS
                if (found := self.metadata(f"general.sampling.{name}")) is not None
            },
        )

    def metadata(self, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(1024)
        length = bindings.llama_model_meta_val_str(self.pointer, key.encode(), buffer, 1024)
        return buffer.value.decode("utf-8", "replace") if length >= 0 else None

    def close(self) -> None:
        self._handle = None

    def _name(self) -> str:
        name = model_name(self.path)
        # As Ollama names its files, by their sums.
        return (self.metadata("general.name") or name) if name.startswith("sha256-") else name

    def _quantization(self) -> str:
        name: bytes | None = bindings.llama_ftype_name(bindings.llama_model_ftype(self.pointer))
        text = name.decode() if name else "unknown"
        return text.removeprefix("(guessed) ").removeprefix("mostly ")

    def _check_supported(self) -> None:
        if bindings.llama_model_has_encoder(self.pointer) or not bindings.llama_model_has_decoder(
            self.pointer
        ):
            raise ModelUnsupported(
                f"{self.path.name} is not a model for chat (it has an encoder): choose a"
                " text-generation model."
            )
        if bindings.llama_model_is_diffusion(self.pointer):
            raise ModelUnsupported(
                f"{self.path.name} is a diffusion model, which is not supported: choose a"
                " text-generation model."
            )


def load_error(path: Path, log: Iterable[str]) -> ModelError:
    """The sentence for what llama.cpp logged when it refused the file."""
    text = "\n".join(log)
    size = num_file_bytes(path)
    if "within the file bounds" in text or "failed to read" in text:
        return ModelDamaged(f"{path.name} is cut off or damaged at {size:,} bytes: {REMEDY}")
    if "unknown model architecture" in text or "unknown pre-tokenizer" in text:
        what = text.partition("unknown ")[2].splitlines()[0].strip()
        return ModelUnsupported(
            f"{path.name} cannot run here (unknown {what}): choose a model of another kind."
        )
    if "allocate" in text or "out of memory" in text:
        return OutOfMemory(
            f"There is not enough memory for {path.name} ({size / 1e9:.1f} GB): close other"
            " programs or choose a smaller model."
        )
    reason = next((line for line in text.splitlines() if "error" in line), "no reason was given")
    return ModelDamaged(f"{path.name} could not be loaded ({reason.strip()}): {REMEDY}")
