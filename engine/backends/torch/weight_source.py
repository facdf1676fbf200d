"""Where weights come from: a file that is read tensor by tensor."""

from collections.abc import Collection
from typing import Protocol, TypeAlias

from torch import Tensor

from kernels.quant.planes import QuantizedMatrix

Matrix: TypeAlias = Tensor | QuantizedMatrix


class WeightSource(Protocol):
    """Tensors by name. At most one is in memory at a time, for whoever lets go of what it read."""

    @property
    def names(self) -> Collection[str]: ...

    @property
    def num_bytes(self) -> int:
        """Of all tensors, as they are stored."""
        ...

    @property
    def num_parameters(self) -> int: ...

    @property
    def num_rows(self) -> dict[str, int]:
        """Of each tensor, its first size."""
        ...

    @property
    def notice(self) -> str:
        """What to tell about weights that cannot be kept as they are stored, or empty."""
        ...

    @property
    def packed_types(self) -> tuple[str, ...]:
        """The types of those that can stay packed."""
        ...

    def size_of(self, name: str) -> int:
        """Bytes, as stored."""
        ...

    def read(self, name: str) -> Matrix:
        """In the processor's memory. Raises ModelDamaged where the file breaks off."""
        ...
