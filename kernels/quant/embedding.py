"""Embedding: some rows of a quantised table as numbers."""

import torch
from torch import Tensor

from kernels.choice import takes_kernel
from kernels.quant.dequantize import dequantize_reference, launch_dequantize
from kernels.quant.planes import QuantizedMatrix


def embedding(token_ids: Tensor, table: QuantizedMatrix | Tensor, dtype: torch.dtype) -> Tensor:
    """token_ids int64 [n], each below the number of rows -> [n, num_columns] of `dtype`."""
    if isinstance(table, Tensor) or not takes_kernel("embedding", token_ids):
        return embedding_reference(token_ids, table, dtype)
    out = torch.empty(len(token_ids), table.num_columns, dtype=dtype, device=token_ids.device)
    launch_dequantize(table, token_ids, out)
    return out


def embedding_reference(
    token_ids: Tensor, table: QuantizedMatrix | Tensor, dtype: torch.dtype
) -> Tensor:
    """As `embedding`, in plain torch."""
    if isinstance(table, QuantizedMatrix):
        return dequantize_reference(table.permute_rows(token_ids), dtype)
    return table.index_select(0, token_ids).to(dtype)
