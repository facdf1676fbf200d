"""Every build of a kernel that a model can need: for warm-up, for tests, and for compiling ahead.

The list is made by calling the operations as a step of the model does, on tensors without memory,
so that it holds what a step will ask for.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.activation import Activation, gated
from kernels.card import Card
from kernels.decode_attention import decode_attention
from kernels.extend_attention import extend_attention
from kernels.launch import Spec, written_down
from kernels.logits import (
    apply_biases,
    apply_bitmask,
    apply_penalties,
    apply_softcap,
    apply_temperature,
)
from kernels.norm import rms_norm
from kernels.paged_kv import BLOCK_TOKENS, PagedKV, allocate
from kernels.quant.embedding import embedding
from kernels.quant.formats import format_of
from kernels.quant.linear import MATMUL_TOKENS, linear
from kernels.quant.planes import QuantizedMatrix
from kernels.rotary import rotate_and_store
from kernels.sample import sample

META = "meta"

# Of prefill steps: each tile of a product, and the longest that has one.
PREFILLS = (64, MATMUL_TOKENS, MATMUL_TOKENS + 1)

# Of decode steps: each has a graph, and some have a KV split of their own.
BATCHES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What decides about the kernels of a model. Sizes in numbers, `max_tokens` of a sequence.

    `rotary_dims`: how many numbers of a head turn, for each kind of layer; 0 for layers without
    positions. `windows`: of each kind of layer; 0 sees everything. `softcap`: of attention;
    `final_softcap`: of logits; 0 for none. `weight_types`: of packed weights, as GGUF calls them.
    """

    name: str
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden: int
    feed_forward: int
    vocab: int
    dtype: torch.dtype = torch.bfloat16
    kv_dtype: torch.dtype = torch.bfloat16
    rotary_dims: tuple[int, ...]
    is_interleaved: bool = False
    windows: tuple[int, ...] = (0,)
    softcap: float = 0.0
    final_softcap: float = 0.0
    activation: Activation = "silu"
    norm_adds_one: bool = False
    has_head_norms: bool = False
    weight_types: tuple[str, ...] = ()
    batches: tuple[int, ...] = BATCHES
    max_tokens: int = 8192


def specs_for(shape: ModelShape, card: Card) -> tuple[Spec, ...]:
    """Each build once, in the order in which a step first needs it."""
    with written_down(card) as launches:
        kv = allocate(1, shape.num_kv_heads, shape.head_dim, shape.kv_dtype, META)
        for num_tokens in shape.batches:
            _step(shape, kv, num_tokens)
        _extend(shape, kv)
        for type_name in shape.weight_types:
            _multiply(shape, type_name)
        for num_rows in shape.batches:
            _choose(shape, num_rows)
    return tuple(dict.fromkeys(launch.spec for launch in launches))


def _empty(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=META)


def _heads(shape: ModelShape, num_tokens: int, num_heads: int) -> Tensor:
    return _empty(num_tokens, num_heads, shape.head_dim, dtype=shape.dtype)


def _step(shape: ModelShape, kv: PagedKV, num_tokens: int) -> None:
    """What a layer does to `num_tokens`, one of each sequence."""
    hidden = _empty(num_tokens, shape.hidden, dtype=shape.dtype)
    weight = _empty(shape.hidden, dtype=shape.dtype)
    rms_norm(hidden, weight, 1e-5, adds_one=shape.norm_adds_one)
    rms_norm(hidden, weight, 1e-5, residual=hidden, adds_one=shape.norm_adds_one)
    queries = _heads(shape, num_tokens, shape.num_heads)
    keys = _heads(shape, num_tokens, shape.num_kv_heads)
    if shape.has_head_norms:
        for heads in (queries, keys):
            rms_norm(
                heads,
                _empty(shape.head_dim, dtype=shape.dtype),
                1e-5,
                adds_one=shape.norm_adds_one,
            )
    positions = _empty(num_tokens, dtype=torch.int64)
    for rotary_dim in shape.rotary_dims:
        table = _empty(shape.max_tokens, 2, rotary_dim // 2, dtype=torch.float32)
        rotate_and_store(
            queries,
            keys,
            keys,
            positions,
            positions,
            table if rotary_dim else None,
            kv,
            is_interleaved=shape.is_interleaved,
        )
    tables = _empty(num_tokens, -(-shape.max_tokens // BLOCK_TOKENS), dtype=torch.int32)
    lengths = _empty(num_tokens, dtype=torch.int32)
    for window in shape.windows:
        decode_attention(
            queries, kv, tables, lengths, scale=1.0, window=window, softcap=shape.softcap
        )
    gated(_empty(num_tokens, 2 * shape.feed_forward, dtype=shape.dtype), shape.activation)


def _extend(shape: ModelShape, kv: PagedKV) -> None:
    """The attention of a step with several tokens of a sequence."""
    tables = _empty(1, -(-shape.max_tokens // BLOCK_TOKENS), dtype=torch.int32)
    starts, lengths = _empty(2, dtype=torch.int32), _empty(1, dtype=torch.int32)
    queries = _heads(shape, 64, shape.num_heads)
    for window in shape.windows:
        extend_attention(
            queries, kv, tables, starts, lengths, scale=1.0, window=window, softcap=shape.softcap
        )


def _multiply(shape: ModelShape, type_name: str) -> None:
    """The layers of packed weights: one for each way in which they differ to a kernel."""
    heads, kv_heads = (count * shape.head_dim for count in (shape.num_heads, shape.num_kv_heads))
    for num_rows, num_columns in (
        (heads, shape.hidden),
        (kv_heads, shape.hidden),
        (heads + 2 * kv_heads, shape.hidden),
        (shape.hidden, heads),
        (shape.feed_forward, shape.hidden),
        (2 * shape.feed_forward, shape.hidden),
        (shape.hidden, shape.feed_forward),
        (shape.vocab, shape.hidden),
    ):
        if num_columns % format_of(type_name).block_columns:
            continue
        weight = QuantizedMatrix.empty(type_name, num_rows, num_columns, META)
        for num_tokens in (*shape.batches, *PREFILLS):
            linear(_empty(num_tokens, num_columns, dtype=shape.dtype), weight)
        linear(_empty(1, num_columns, dtype=shape.dtype), weight, is_exact=True)
        if num_rows == shape.vocab:
            embedding(_empty(1, dtype=torch.int64), weight, shape.dtype)


def _choose(shape: ModelShape, num_rows: int) -> None:
    """From logits to tokens."""
    logits = _empty(num_rows, shape.vocab, dtype=torch.float32)
    tokens = _empty(num_rows, 64, dtype=torch.int32)
    numbers = _empty(num_rows, dtype=torch.float32)
    wholes = _empty(num_rows, dtype=torch.int64)
    if shape.final_softcap:
        apply_softcap(logits, shape.final_softcap)
    apply_biases(logits, tokens, _empty(num_rows, 64, dtype=torch.float32))
    bitmask = _empty(num_rows, -(-shape.vocab // 32), dtype=torch.int32)
    apply_bitmask(logits, bitmask)
    apply_bitmask(logits, bitmask, _empty(num_rows, dtype=torch.int32))
    apply_penalties(logits, tokens, tokens, tokens, numbers, numbers, numbers)
    apply_temperature(logits, numbers)
    sample(
        logits,
        temperatures=numbers,
        top_k=_empty(num_rows, dtype=torch.int32),
        top_p=numbers,
        min_p=numbers,
        seeds=wholes,
        positions=wholes,
        filter_temperatures=numbers,
    )
