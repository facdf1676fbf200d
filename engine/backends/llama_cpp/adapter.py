"""A LoRA adapter in memory beside its model, or the sentence that says why it cannot be."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from ctypes import c_float
from pathlib import Path
from struct import pack
from typing import Any

from engine.adapter import Adapter
from engine.backends.llama_cpp.adapter_file import REMEDY, check_adapter_file, check_fits
from engine.backends.llama_cpp.library import bindings, collected_log
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.split_file import model_name
from engine.errors import ModelDamaged, ModelError, OutOfMemory


class LlamaAdapter:
    """Freed by llama.cpp together with the model that it was loaded beside.

    `kv_name` differs wherever the KV under this adapter may differ: its content and its scale.
    """

    def __init__(self, adapter: Adapter, model: LlamaModel) -> None:
        path = adapter.path
        check_fits(path, check_adapter_file(path), model_name(model.path), model.headers)
        self.scale = adapter.scale
        identity = _identity(path)
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise ModelError(f"{path} cannot be read ({error.strerror}): {REMEDY}") from error
        self.kv_name = digest + pack("<f", adapter.scale)
        with collected_log() as log:
            self.pointer: Any = bindings.llama_adapter_lora_init(model.pointer, os.fsencode(path))
            if not self.pointer:
                raise adapter_error(path, log)
        if _identity(path) != identity:
            # Its KV would be kept under the name of another content.
            raise ModelError(f"{path.name} was changed while it was read: load the model again.")


def apply_adapters(context: Any, adapters: Sequence[LlamaAdapter]) -> None:
    """All that this context computes from now on is computed with these."""
    count = len(adapters)
    pointers = (bindings.llama_adapter_lora_p_ctypes * count)(*[each.pointer for each in adapters])
    scales = (c_float * count)(*[each.scale for each in adapters])
    if bindings.llama_set_adapters_lora(context, pointers, count, scales) != 0:
        raise ModelError("The adapters could not be put into use: use the model without them.")


def adapter_error(path: Path, log: Iterable[str]) -> ModelError:
    """The sentence for what llama.cpp logged when it refused the file."""
    text = "\n".join(log)
    if "allocate" in text or "out of memory" in text or "bad_alloc" in text:
        return OutOfMemory(
            f"There is not enough memory for the adapter {path.name}"
            f" ({path.stat().st_size / 1e9:.1f} GB): close other programs, or use the model without"
            " it."
        )
    reason = text.rpartition("failed to apply lora adapter: ")[2].strip() or "no reason was given"
    return ModelDamaged(f"{path.name} could not be loaded ({reason.splitlines()[0]}): {REMEDY}")


def _identity(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]
