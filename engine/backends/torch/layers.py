"""The layers that all our architectures are made of, over weights that may be packed."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.backends.torch.step_inputs import StepInputs
from engine.backends.torch.weight_source import Matrix
from kernels.activation import Activation, gated
from kernels.decode_attention import decode_attention
from kernels.extend_attention import extend_attention
from kernels.norm import rms_norm
from kernels.paged_kv import PagedKV
from kernels.quant.linear import linear
from kernels.rotary import rotate_and_store


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    weight: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, width] or [n, heads, width]."""
        normed = rms_norm(x, self.weight, self.eps)
        assert isinstance(normed, Tensor)
        return normed

    def after(self, x: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        """The norm of x + residual [n, width], and that sum."""
        if residual is None:
            return self(x), x
        normed, total = rms_norm(x, self.weight, self.eps, residual=residual)
        return normed, total


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Some matrices side by side, which may be packed in different ways."""

    matrices: Sequence[Matrix]
    biases: Sequence[Tensor | None]

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, num_columns] -> [n, rows of all]."""
        parts = [
            linear(x, matrix, bias) for matrix, bias in zip(self.matrices, self.biases, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attention:
    """`table` is that of `rotary_table`; with `window` 0 it looks back to the first token."""

    query_key_value: Projection
    output: Projection
    query_norm: Norm | None
    key_norm: Norm | None
    num_heads: int
    num_kv_heads: int
    head_dim: int
    table: Tensor
    scale: float
    window: int
    softcap: float

    def __call__(self, x: Tensor, inputs: StepInputs, kv: PagedKV) -> Tensor:
        """x [n, width], whose K and V go into `kv` -> [n, width]."""
        counts = (self.num_heads, self.num_kv_heads, self.num_kv_heads)
        heads = self.query_key_value(x).view(len(x), sum(counts), self.head_dim)
        queries, keys, values = heads.split(counts, dim=1)
        if self.query_norm is not None and self.key_norm is not None:
            queries, keys = self.query_norm(queries), self.key_norm(keys)
        queries = rotate_and_store(
            queries, keys, values, inputs.positions, inputs.slots, self.table, kv
        )
        return self.output(self._attend(queries, inputs, kv).reshape(len(x), -1))

    def _attend(self, queries: Tensor, inputs: StepInputs, kv: PagedKV) -> Tensor:
        if inputs.query_starts is None:
            return decode_attention(
                queries,
                kv,
                inputs.block_tables,
                inputs.lengths,
                scale=self.scale,
                window=self.window,
                softcap=self.softcap,
            )
        return extend_attention(
            queries,
            kv,
            inputs.block_tables,
            inputs.query_starts,
            inputs.lengths,
            scale=self.scale,
            window=self.window,
            softcap=self.softcap,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatedLayer:
    gate_up: Projection
    down: Projection
    activation: Activation

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, width] -> [n, width]."""
        return self.down(gated(self.gate_up(x), self.activation))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecoderLayer:
    attention_norm: Norm
    attention: Attention
    post_attention_norm: Norm | None
    mlp_norm: Norm
    mlp: GatedLayer
    post_mlp_norm: Norm | None
    residual_scale: float

    def __call__(
        self, x: Tensor, residual: Tensor | None, inputs: StepInputs, kv: PagedKV
    ) -> tuple[Tensor, Tensor]:
        """What it adds, and what that is to be added to; [n, width] each, as it is given them."""
        x, residual = self.attention_norm.after(x, residual)
        x = self._added(self.attention(x, inputs, kv), self.post_attention_norm)
        x, residual = self.mlp_norm.after(x, residual)
        return self._added(self.mlp(x), self.post_mlp_norm), residual

    def _added(self, x: Tensor, norm: Norm | None) -> Tensor:
        if norm is not None:
            x = norm(x)
        return x if self.residual_scale == 1.0 else x * self.residual_scale
