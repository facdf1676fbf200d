"""How a context is made, and the name of all that this does to its KV."""

from hashlib import blake2b
from typing import Any

import llama_cpp

from engine.backends.llama_cpp.kv_type import GGML_TYPES, KVType
from engine.backends.llama_cpp.library import bindings, build_name
from engine.backends.llama_cpp.model import LlamaModel
from engine.batch import MAX_GUESSED

KV_LAYOUT = 1
"""To be raised when we arrange KV in another way, so that nobody reads the old one."""

_POSITIONS = (
    "rope_scaling_type",
    "rope_freq_base",
    "rope_freq_scale",
    "yarn_ext_factor",
    "yarn_attn_factor",
    "yarn_beta_fast",
    "yarn_beta_slow",
    "yarn_orig_ctx",
)


def make_params(
    *, num_cells: int, num_sequences: int, max_batch_tokens: int, kv_type: KVType
) -> Any:
    """`llama_context_params`: one place for KV, which every sequence may use all of.

    Flash attention is on: without it a short conversation slows down with what others hold.
    """
    params = bindings.llama_context_default_params()
    params.n_ctx = num_cells
    params.n_batch = params.n_ubatch = max_batch_tokens
    # No step has more rows of logits than one for each sequence and each guess; llama.cpp would
    # reserve memory for one of each token.
    params.n_seq_max = num_sequences
    params.n_outputs_max = num_sequences + MAX_GUESSED
    params.kv_unified = True
    params.flash_attn_type = 1
    params.type_k = params.type_v = GGML_TYPES[kv_type]
    # The whole window of a sliding layer is kept, so that a fork finds every cell.
    params.swa_full = True
    return params


def kv_namespace(params: Any, model: LlamaModel, adapters: tuple[bytes, ...] = ()) -> bytes:
    """32 bytes that differ wherever the KV of the same tokens of a model file may differ.

    `adapters`: a name of each one's content and scale. The processor counts too, because
    another one rounds in another way.
    """
    facts: list[object] = [KV_LAYOUT, llama_cpp.__version__, *build_name()]
    facts += [params.type_k, params.type_v, params.flash_attn_type, params.kv_unified]
    facts += [params.swa_full, model.window_tokens]
    facts += [getattr(params, name) for name in _POSITIONS]
    facts += [len(adapters), *adapters]
    return blake2b(repr(facts).encode(), digest_size=32).digest()
