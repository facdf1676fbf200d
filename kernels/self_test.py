"""Every kernel of a model once on this card, against its reference: those that are wrong are
switched off, so that a driver or a compiler with a fault costs speed and not sense."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from kernels import choice
from kernels.activation import gated
from kernels.decode_attention import decode_attention
from kernels.extend_attention import extend_attention
from kernels.language import KERNEL_ERRORS
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
from kernels.quant.linear import linear
from kernels.quant.planes import QuantizedMatrix
from kernels.rotary import rotate_and_store
from kernels.rotary_table import rotary_table
from kernels.sample import sample
from kernels.specs import ModelShape

# Tokens of two sequences, of which the second ends within a block.
LENGTHS = (2 * BLOCK_TOKENS, BLOCK_TOKENS + 3)

# Rows and columns of packed weights: enough for a tile that is not full.
NUM_ROWS, NUM_COLUMNS = 80, 512

# Of the largest number, for each type: a fault is far more, rounding far less.
TOLERANCES = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}

# Where kernels round what they multiply to int8.
INT8_TOLERANCE = 5e-2


class Subject:
    """The model and the card of one test, and numbers that are the same for both ways."""

    def __init__(self, shape: ModelShape, device: torch.device | str) -> None:
        self.shape = shape
        self.device = device
        self._generator = torch.Generator()

    def begin(self) -> None:
        self._generator.manual_seed(1)

    def random(self, *size: int, dtype: torch.dtype | None = None) -> Tensor:
        numbers = torch.randn(size, generator=self._generator)
        return numbers.to(dtype or self.shape.dtype).to(self.device)

    def wholes(self, *numbers: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.tensor(numbers, dtype=dtype, device=self.device)


Check = Callable[[Subject], Sequence[Tensor]]


def self_test(shape: ModelShape, device: torch.device | str) -> Mapping[str, str]:
    """Operations that were switched off, and why, a sentence each for the user."""
    subject = Subject(shape, device)
    failed = {}
    for operation, check in CHECKS.items():
        tolerance = TOLERANCES[shape.dtype]
        if operation == "linear":
            tolerance = max(tolerance, INT8_TOLERANCE)
        reason = _fault(subject, check, tolerance)
        if reason:
            failed[operation] = (
                f"The kernel of {operation} {reason} on this card, so a slower way is taken."
            )
            choice.switch_off(operation, failed[operation])
    return MappingProxyType(failed)


def _fault(subject: Subject, check: Check, tolerance: float) -> str:
    with choice.references():
        subject.begin()
        expected = [x.double().cpu() for x in check(subject)]
    try:
        subject.begin()
        actual = [x.double().cpu() for x in check(subject)]
    except KERNEL_ERRORS as error:
        words = str(error).strip().splitlines()
        return f"failed ({words[-1][:200] if words else type(error).__name__})"
    for ours, wanted in zip(actual, expected, strict=True):
        finite = wanted[wanted.isfinite()]
        largest = finite.abs().max().item() if finite.numel() else 0.0
        if not torch.allclose(ours, wanted, rtol=0, atol=tolerance * largest, equal_nan=True):
            return "gave wrong numbers"
    return ""


def _rms_norm(subject: Subject) -> Sequence[Tensor]:
    shape = subject.shape
    x, weight = subject.random(3, shape.hidden), subject.random(shape.hidden)
    heads = subject.random(3, shape.num_heads, shape.head_dim)
    head_weight = subject.random(shape.head_dim)
    one = shape.norm_adds_one
    return (
        rms_norm(x, weight, 1e-5, adds_one=one),
        *rms_norm(x, weight, 1e-5, residual=x, adds_one=one),
        rms_norm(heads, head_weight, 1e-5, adds_one=one),
    )


def _gated(subject: Subject) -> Sequence[Tensor]:
    gate_up = subject.random(3, 2 * subject.shape.feed_forward)
    return (gated(gate_up, subject.shape.activation),)


def _filled(subject: Subject) -> tuple[PagedKV, Tensor, Tensor, list[Tensor]]:
    """A pool with two sequences, their block table and lengths, and turned queries."""
    shape = subject.shape
    kv = allocate(8, shape.num_kv_heads, shape.head_dim, shape.kv_dtype, subject.device)
    tables = subject.wholes(5, 2, 0, 1, 7, 0).view(2, 3)
    lengths = subject.wholes(*LENGTHS)
    turned = []
    for row, length in enumerate(LENGTHS):
        tokens = torch.arange(length, device=subject.device)
        slots = tables[row, tokens // BLOCK_TOKENS].long() * BLOCK_TOKENS
        slots += tokens % BLOCK_TOKENS
        keys, values = (
            subject.random(length, shape.num_kv_heads, shape.head_dim) for _ in range(2)
        )
        queries = subject.random(length, shape.num_heads, shape.head_dim)
        dim = max(shape.rotary_dims)
        table = rotary_table(dim, 10000.0, 64, device=subject.device) if dim else None
        turned.append(
            rotate_and_store(
                queries,
                keys,
                values,
                tokens,
                slots,
                table,
                kv,
                is_interleaved=shape.is_interleaved,
            )
        )
    return kv, tables, lengths, turned


def _rotate_and_store(subject: Subject) -> Sequence[Tensor]:
    kv, _, _, turned = _filled(subject)
    scales = [x for x in (kv.key_scales, kv.value_scales) if x is not None]
    return (*turned, kv.keys, kv.values, *scales)


def _scale(subject: Subject) -> float:
    return float(subject.shape.head_dim**-0.5)


def _decode_attention(subject: Subject) -> Sequence[Tensor]:
    kv, tables, lengths, turned = _filled(subject)
    queries = torch.stack([x[-1] for x in turned])
    return [
        decode_attention(
            queries,
            kv,
            tables,
            lengths,
            scale=_scale(subject),
            window=window,
            softcap=subject.shape.softcap,
        )
        for window in subject.shape.windows
    ]


def _extend_attention(subject: Subject) -> Sequence[Tensor]:
    kv, tables, lengths, turned = _filled(subject)
    queries = torch.cat((turned[0][-9:], turned[1]))
    starts = subject.wholes(0, 9, 9 + LENGTHS[1])
    return [
        extend_attention(
            queries,
            kv,
            tables,
            starts,
            lengths,
            scale=_scale(subject),
            window=window,
            softcap=subject.shape.softcap,
        )
        for window in subject.shape.windows
    ]


def _logits(subject: Subject) -> Tensor:
    return 4 * subject.random(2, subject.shape.vocab, dtype=torch.float32)


def _apply_biases(subject: Subject) -> Sequence[Tensor]:
    logits, ids = _logits(subject), subject.wholes(1, -1, 3, 0).view(2, 2)
    apply_biases(logits, ids, subject.random(2, 2, dtype=torch.float32))
    return (logits,)


def _apply_bitmask(subject: Subject) -> Sequence[Tensor]:
    logits = _logits(subject)
    num_words = -(-subject.shape.vocab // 32)
    apply_bitmask(logits, subject.wholes(*range(num_words))[None], subject.wholes(1))
    return (logits,)


def _apply_penalties(subject: Subject) -> Sequence[Tensor]:
    logits, ids = _logits(subject), subject.wholes(1, -1, 3, 0).view(2, 2)
    factors = subject.random(2, dtype=torch.float32).abs() + 0.5
    apply_penalties(logits, ids, ids.clamp(min=0), ids.clamp(min=0), factors, factors, factors)
    return (logits,)


def _apply_temperature(subject: Subject) -> Sequence[Tensor]:
    logits = _logits(subject)
    apply_temperature(logits, subject.random(2, dtype=torch.float32).abs())
    return (logits,)


def _apply_softcap(subject: Subject) -> Sequence[Tensor]:
    logits = _logits(subject)
    apply_softcap(logits, 5.0)
    return (logits,)


def _sample(subject: Subject) -> Sequence[Tensor]:
    """One row is drawn from what filters leave, and one is the likeliest."""
    wholes = subject.wholes(7, 8, dtype=torch.int64)
    halves = torch.full((2,), 0.5, device=subject.device)
    token_ids = sample(
        _logits(subject),
        temperatures=2 * subject.wholes(1, 0, dtype=torch.float32),
        top_k=subject.wholes(20, 0),
        top_p=halves,
        min_p=halves / 50,
        seeds=wholes,
        positions=wholes,
    )
    # Times the vocabulary, so that a neighbour is far beyond any rounding.
    return (token_ids * subject.shape.vocab,)


def _packed(subject: Subject, type_name: str) -> QuantizedMatrix:
    """Any bits, with scales of about a hundredth."""
    weight = QuantizedMatrix.empty(type_name, NUM_ROWS, NUM_COLUMNS, subject.device)
    for name, plane in weight.planes.items():
        held = plane.view(torch.uint8)
        bits = subject.random(*held.shape, dtype=torch.float32) * 1e4
        held.copy_(bits.long() & 0xFF)
        if name == "scales":
            plane.view(torch.float16).fill_(0.01)
    return weight


def _linear(subject: Subject) -> Sequence[Tensor]:
    return [
        linear(
            subject.random(num_tokens, NUM_COLUMNS),
            _packed(subject, type_name),
            is_exact=is_exact,
        )
        for type_name in subject.shape.weight_types
        for num_tokens, is_exact in ((1, False), (1, True), (2, False), (20, False))
    ]


def _embedding(subject: Subject) -> Sequence[Tensor]:
    ids = subject.wholes(NUM_ROWS - 1, 0, 3, dtype=torch.int64)
    return [
        embedding(ids, _packed(subject, type_name), subject.shape.dtype)
        for type_name in subject.shape.weight_types
    ]


CHECKS: Mapping[str, Check] = {
    "rms_norm": _rms_norm,
    "gated": _gated,
    # Before attention, which reads what it writes.
    "rotate_and_store": _rotate_and_store,
    "decode_attention": _decode_attention,
    "extend_attention": _extend_attention,
    "linear": _linear,
    "embedding": _embedding,
    "apply_biases": _apply_biases,
    "apply_bitmask": _apply_bitmask,
    "apply_penalties": _apply_penalties,
    "apply_temperature": _apply_temperature,
    "apply_softcap": _apply_softcap,
    "sample": _sample,
}
