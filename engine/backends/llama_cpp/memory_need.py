"""Whether the memory that a context takes is there, before it is made."""

import psutil

from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.model_shape import ModelShape
from engine.backends.llama_cpp.split_file import model_name
from engine.config import EngineConfig
from engine.errors import OutOfMemory


def check_memory(
    model: LlamaModel,
    *,
    num_cells: int,
    num_ids: int,
    max_batch_tokens: int,
    kv_type: KVType,
    beside_bytes: int = 0,
) -> None:
    """Raise when it is not there: llama.cpp takes it first and touches it then, and the system
    would end the process. `beside_bytes`: what a draft model will take as well."""
    needed = model.context_shape.num_bytes(
        num_cells=num_cells,
        num_ids=num_ids,
        max_batch_tokens=max_batch_tokens,
        kv_type=kv_type,
    )
    available = psutil.virtual_memory().available
    if beside_bytes and needed + beside_bytes > available:
        raise OutOfMemory(
            f"A context of {num_cells:,} tokens and the draft model need"
            f" {(needed + beside_bytes) / 1e9:,.1f} GB and {available / 1e9:,.1f} GB of memory are"
            " free: leave the draft model out, choose a smaller context in the settings, or close"
            " other programs."
        )
    # Most layers of a recurrent model need no memory per token, so its figure says nothing.
    if needed > available and not model.is_recurrent:
        raise OutOfMemory(
            f"A context of {num_cells:,} tokens needs {needed / 1e9:,.1f} GB and"
            f" {available / 1e9:,.1f} GB of memory are free: choose a smaller context in the"
            " settings or close other programs."
        )


def check_model(shape: ModelShape, config: EngineConfig, beside_bytes: int = 0) -> None:
    """Raise when weights and context together are more than is free, before either is taken."""
    # What a recurrent model needs for each token is not known, see above.
    is_known = shape.context.is_cut_anywhere
    needed = beside_bytes + (
        shape.memory_bytes(config) if is_known else shape.num_bytes + config.beside_model_bytes
    )
    available = psutil.virtual_memory().available
    if needed > available:
        tokens = config.num_cells(shape.trained_context)
        name = model_name(config.model_path)
        verb = "and the draft model need" if beside_bytes else "needs"
        remedy = "leave the draft model out, " if beside_bytes else ""
        raise OutOfMemory(
            f"{name} {verb} {needed / 1e9:,.1f} GB of memory with a context of {tokens:,} tokens,"
            f" and {available / 1e9:,.1f} GB are free: {remedy}choose a smaller model or a smaller"
            " context, or close other programs."
        )
