"""Where weights go and as what: packed on a card, as numbers where that is faster."""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.backends.torch.weight_source import Matrix
from kernels.quant.dequantize import dequantize_reference
from kernels.quant.planes import QuantizedMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """`dtype` is that of all that goes from layer to layer. `keeps_packed`: quantised matrices
    stay as they are in the file; else they become numbers of `dtype` once and for all."""

    device: torch.device
    dtype: torch.dtype
    keeps_packed: bool

    def matrix(self, weight: Matrix) -> Matrix:
        if not isinstance(weight, QuantizedMatrix):
            return weight.to(self.device, self.dtype)
        if self.keeps_packed:
            return weight.to(self.device)
        return dequantize_reference(weight, self.dtype).to(self.device)

    def bias(self, weight: Tensor) -> Tensor:
        return weight.to(self.device, self.dtype)

    def norm(self, weight: Tensor) -> Tensor:
        """Small, and what all others are multiplied with: in float32."""
        return weight.to(self.device, torch.float32)
