"""Embedding: some rows of a quantised table as numbers."""

import torch
from torch import Tensor

from kernels.quant.dequantize import dequantize_reference
from kernels.quant.planes import QuantizedMatrix


def embedding_reference(
    token_ids: Tensor, table: QuantizedMatrix | Tensor, dtype: torch.dtype
) -> Tensor:
    """token_ids int64 [n] -> [n, num_columns]."""
    if isinstance(table, QuantizedMatrix):
        return dequantize_reference(table.permute_rows(token_ids), dtype)
    return table.index_select(0, token_ids).to(dtype)


def embedding(token_ids: Tensor, table: QuantizedMatrix | Tensor, dtype: torch.dtype) -> Tensor:
    """token_ids int64 [n] -> [n, num_columns]."""
    return embedding_reference(token_ids, table, dtype)
