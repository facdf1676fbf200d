"""A model: its embedding, its layers, and the logits at its end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.backends.torch.layers import DecoderLayer, Norm
from engine.backends.torch.step_inputs import StepInputs
from engine.backends.torch.weight_source import Matrix
from kernels.paged_kv import PagedKV
from kernels.quant.embedding import embedding
from kernels.quant.linear import linear


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoder:
    """Owned by the engine thread."""

    words: Matrix
    layers: Sequence[DecoderLayer]
    last_norm: Norm
    head: Matrix
    dtype: torch.dtype
    embedding_scale: float
    logit_divisor: float
    logit_softcap: float

    def hidden(
        self,
        inputs: StepInputs,
        kv: Sequence[PagedKV],
        is_unwanted: Callable[[], bool] = lambda: False,
    ) -> Tensor | None:
        """What stands at the rows that want logits, [num_rows, width], normed; the K and V of all
        tokens are in `kv` then. None: between two layers it was no longer wanted."""
        x = embedding(inputs.token_ids, self.words, self.dtype)
        if self.embedding_scale != 1.0:
            x = x * self.embedding_scale
        residual: Tensor | None = None
        for layer, pool in zip(self.layers, kv, strict=True):
            if is_unwanted():
                return None
            x, residual = layer(x, residual, inputs, pool)
        assert residual is not None
        normed, _ = self.last_norm.after(x[inputs.rows], residual[inputs.rows])
        return normed

    def logits(self, hidden: Tensor) -> Tensor:
        """float32 [num_rows, num_words]."""
        logits = linear(hidden, self.head).float()
        if self.logit_divisor != 1.0:
            logits = logits / self.logit_divisor
        if self.logit_softcap:
            logits = self.logit_softcap * torch.tanh(logits / self.logit_softcap)
        return logits
