"""How much memory a context takes beside the weights of its model, before it is made."""

from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model import LlamaModel


def memory_bytes(
    model: LlamaModel,
    *,
    num_cells: int,
    num_sequences: int,
    max_batch_tokens: int,
    kv_type: KVType,
) -> int:
    """The KV, exactly, and about what a step needs: what its layers hand on, which cell each
    token sees, and a row of logits for each sequence.

    The KV of models with recurrent layers is an upper bound, which may be far from the truth.
    """
    kv = num_cells * model.kv_shape.bytes_per_token(kv_type)
    rows = 4 * (num_sequences + 1) * model.vocabulary.num_tokens
    # Two numbers of four bytes for each of the widest layer, and six for each of the model: what
    # SmolLM2 took with batches of 64, 256 and 512 tokens.
    per_token = 4 * (2 * model.widest_layer + 6 * model.width) + 2 * num_cells
    return kv + rows + max_batch_tokens * per_token
