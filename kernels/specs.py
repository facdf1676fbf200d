"""Every build of a kernel that a model can need: for warm-up, for tests, and for compiling ahead.

The list is made by calling the operations as a step of the model does, on tensors without memory,
so that it holds what a step will ask for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

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
from kernels.paged_kv import BLOCK_TOKENS, allocate
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
        for _ in warm_up(shape, META):
            pass
    return tuple(dict.fromkeys(launch.spec for launch in launches))


def warm_up(shape: ModelShape, device: torch.device | str) -> Iterator[float]:
    """Run everything once on `device`, so that nothing is compiled or loaded later, where it would
    keep somebody waiting or break the recording of a graph. Gives the share that is done.

    Raises what `language.KERNEL_ERRORS` names; what `self_test` switched off is passed over.
    """
    model = _Model(shape, device)
    parts: list[Callable[[], None]] = []
    for num_tokens in shape.batches:
        parts.append(partial(model.layer, num_tokens))
    parts.append(model.extend)
    for type_name in shape.weight_types:
        parts.append(partial(model.multiply, type_name))
    for num_rows in shape.batches:
        parts.append(partial(model.choose, num_rows))
    for number, part in enumerate(parts, start=1):
        part()
        yield number / len(parts)


class _Model:
    """What a step does, on numbers that are all zero: no length, and a pool of one block."""

    def __init__(self, shape: ModelShape, device: torch.device | str) -> None:
        self.shape = shape
        self.device = device
        self.kv = allocate(1, shape.num_kv_heads, shape.head_dim, shape.kv_dtype, device)

    def zeros(self, *size: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.zeros(size, dtype=dtype or self.shape.dtype, device=self.device)

    def heads(self, num_tokens: int, num_heads: int) -> Tensor:
        return self.zeros(num_tokens, num_heads, self.shape.head_dim)

    def layer(self, num_tokens: int) -> None:
        """What a layer does to `num_tokens`, one of each sequence."""
        shape = self.shape
        hidden = self.zeros(num_tokens, shape.hidden)
        weight = self.zeros(shape.hidden)
        rms_norm(hidden, weight, 1e-5, adds_one=shape.norm_adds_one)
        rms_norm(hidden, weight, 1e-5, residual=hidden, adds_one=shape.norm_adds_one)
        queries = self.heads(num_tokens, shape.num_heads)
        keys = self.heads(num_tokens, shape.num_kv_heads)
        if shape.has_head_norms:
            for heads in (queries, keys):
                rms_norm(
                    heads,
                    self.zeros(shape.head_dim),
                    1e-5,
                    adds_one=shape.norm_adds_one,
                )
        positions = self.zeros(num_tokens, dtype=torch.int64)
        for rotary_dim in shape.rotary_dims:
            table = self.zeros(shape.max_tokens, 2, rotary_dim // 2, dtype=torch.float32)
            rotate_and_store(
                queries,
                keys,
                keys,
                positions,
                positions,
                table if rotary_dim else None,
                self.kv,
                is_interleaved=shape.is_interleaved,
            )
        tables = self.zeros(num_tokens, -(-shape.max_tokens // BLOCK_TOKENS), dtype=torch.int32)
        lengths = self.zeros(num_tokens, dtype=torch.int32)
        for window in shape.windows:
            decode_attention(
                queries, self.kv, tables, lengths, scale=1.0, window=window, softcap=shape.softcap
            )
        gated(self.zeros(num_tokens, 2 * shape.feed_forward), shape.activation)

    def extend(self) -> None:
        """The attention of a step with several tokens of a sequence."""
        shape = self.shape
        tables = self.zeros(1, -(-shape.max_tokens // BLOCK_TOKENS), dtype=torch.int32)
        starts, lengths = self.zeros(2, dtype=torch.int32), self.zeros(1, dtype=torch.int32)
        queries = self.heads(64, shape.num_heads)
        for window in shape.windows:
            extend_attention(
                queries,
                self.kv,
                tables,
                starts,
                lengths,
                scale=1.0,
                window=window,
                softcap=shape.softcap,
            )

    def multiply(self, type_name: str) -> None:
        """The layers of packed weights: one for each way in which they differ to a kernel."""
        shape = self.shape
        heads, kv_heads = (
            count * shape.head_dim for count in (shape.num_heads, shape.num_kv_heads)
        )
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
            # Builds depend on whether rows come in sixteens, and not on how many there are.
            few = 16 + num_rows % 16
            weight = QuantizedMatrix.empty(type_name, few, num_columns, self.device)
            for num_tokens in (*shape.batches, *PREFILLS):
                linear(self.zeros(num_tokens, num_columns), weight)
            linear(self.zeros(1, num_columns), weight, is_exact=True)
            if num_rows == shape.vocab:
                embedding(self.zeros(1, dtype=torch.int64), weight, shape.dtype)

    def choose(self, num_rows: int) -> None:
        """From logits to tokens."""
        shape = self.shape
        logits = self.zeros(num_rows, shape.vocab, dtype=torch.float32)
        tokens = self.zeros(num_rows, 64, dtype=torch.int32)
        numbers = self.zeros(num_rows, dtype=torch.float32) + 1
        wholes = self.zeros(num_rows, dtype=torch.int64)
        if shape.final_softcap:
            apply_softcap(logits, shape.final_softcap)
        apply_biases(logits, tokens, self.zeros(num_rows, 64, dtype=torch.float32))
        bitmask = self.zeros(num_rows, -(-shape.vocab // 32), dtype=torch.int32)
        apply_bitmask(logits, bitmask)
        apply_bitmask(logits, bitmask, self.zeros(num_rows, dtype=torch.int32))
        apply_penalties(logits, tokens, tokens, tokens, numbers, numbers, numbers)
        apply_temperature(logits, numbers)
        sample(
            logits,
            temperatures=numbers,
            top_k=self.zeros(num_rows, dtype=torch.int32),
            top_p=numbers,
            min_p=numbers,
            seeds=wholes,
            positions=wholes,
            filter_temperatures=numbers,
        )
