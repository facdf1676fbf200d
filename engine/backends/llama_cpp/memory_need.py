"""How much memory a context takes beside the weights of its model, before it is made."""

import psutil

from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model import LlamaModel
from engine.batch import MAX_GUESSED
from engine.errors import OutOfMemory


def memory_bytes(
    model: LlamaModel,
    *,
    num_cells: int,
    num_sequences: int,
    max_batch_tokens: int,
    kv_type: KVType,
) -> int:
    """The KV, exactly, and about what a step needs: what its layers hand on, which cell each
    token sees, and a row of logits for each sequence and for each token that is guessed.

    The KV of models with recurrent layers is an upper bound, which may be far from the truth.
    """
    kv = num_cells * model.kv_shape.bytes_per_token(kv_type)
    rows = 4 * (num_sequences + 1 + MAX_GUESSED) * model.vocabulary.num_tokens
    # Two numbers of four bytes for each of the widest layer, and six for each of the model: what
    # SmolLM2 took with batches of 64, 256 and 512 tokens.
    per_token = 4 * (2 * model.widest_layer + 6 * model.width) + 2 * num_cells
    return kv + rows + max_batch_tokens * per_token


def check_memory(
    model: LlamaModel,
    *,
    num_cells: int,
    num_sequences: int,
    max_batch_tokens: int,
    kv_type: KVType,
    beside_bytes: int = 0,
) -> None:
    """Raise when it is not there: llama.cpp takes it first and touches it then, and the system
    would end the process. `beside_bytes`: what a draft model will take as well."""
    needed = memory_bytes(
        model,
        num_cells=num_cells,
        num_sequences=num_sequences,
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
