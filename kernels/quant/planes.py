"""A quantised matrix: the bytes of the file, sorted into planes that a card can read in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.quant.formats import QuantFormat, format_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantizedMatrix:
    """[num_rows, num_columns], row by row what GGUF holds for one weight.

    `planes` by name: [num_rows, bytes of the plane in a row / size of its dtype], contiguous.
    No number is changed: `to_bytes` gives the file's bytes back. Rows can be picked, put in
    another order and joined, since no block reaches over the end of a row.
    """

    type_name: str
    num_rows: int
    num_columns: int
    planes: Mapping[str, Tensor]

    @classmethod
    def from_bytes(
        cls, type_name: str, num_rows: int, num_columns: int, data: Tensor
    ) -> "QuantizedMatrix":
        """`data`: uint8 of any shape, as in the file. ValueError where its size is another."""
        form = format_of(type_name)
        num_bytes = num_rows * form.row_bytes(num_columns)
        if data.dtype != torch.uint8 or data.numel() != num_bytes:
            raise ValueError(
                f"{num_rows:,} rows of {num_columns:,} columns in {type_name} are {num_bytes:,}"
                f" bytes, and these are {data.numel():,} of {data.dtype}."
            )
        blocks = data.reshape(num_rows, -1, form.block_bytes)
        planes = {}
        for plane in form.planes:
            part = blocks[:, :, plane.start : plane.start + plane.num_bytes]
            # Cloned also where it is contiguous already: a view could start at an odd address.
            apart = part.clone(memory_format=torch.contiguous_format).reshape(num_rows, -1)
            planes[plane.name] = apart.view(getattr(torch, plane.dtype))
        return cls(type_name=type_name, num_rows=num_rows, num_columns=num_columns, planes=planes)

    @classmethod
    def empty(
        cls, type_name: str, num_rows: int, num_columns: int, device: torch.device | str
    ) -> "QuantizedMatrix":
        """Whatever its memory holds; on the device "meta" it has none."""
        form = format_of(type_name)
        form.row_bytes(num_columns)
        num_blocks = num_columns // form.block_columns
        planes = {}
        for plane in form.planes:
            dtype = getattr(torch, plane.dtype)
            width = num_blocks * plane.num_bytes // dtype.itemsize
            planes[plane.name] = torch.empty(num_rows, width, dtype=dtype, device=device)
        return cls(type_name=type_name, num_rows=num_rows, num_columns=num_columns, planes=planes)

    @property
    def form(self) -> QuantFormat:
        return format_of(self.type_name)

    @property
    def num_blocks(self) -> int:
        """Of a row."""
        return self.num_columns // self.form.block_columns

    @property
    def num_bytes(self) -> int:
        return self.num_rows * self.form.row_bytes(self.num_columns)

    @property
    def device(self) -> torch.device:
        return self.planes["low"].device

    def block_bytes(self, plane: str) -> Tensor:
        """uint8 [num_rows, num_blocks, bytes of the plane in a block]; a view."""
        return self.planes[plane].view(torch.uint8).view(self.num_rows, self.num_blocks, -1)

    def to_bytes(self) -> Tensor:
        """uint8 [num_rows, bytes of a row in the file]."""
        parts = [self.block_bytes(plane.name) for plane in self.form.planes]
        return torch.cat(parts, dim=2).view(self.num_rows, -1)

    def to(self, device: torch.device | str) -> "QuantizedMatrix":
        return self._with_planes({name: plane.to(device) for name, plane in self.planes.items()})

    def rows(self, start: int, stop: int) -> "QuantizedMatrix":
        """[start, stop). Shares the memory of the planes that can start there."""
        return self._with_planes(
            {name: _aligned(plane[start:stop]) for name, plane in self.planes.items()}
        )

    def permute_rows(self, order: Tensor) -> "QuantizedMatrix":
        """Row i of the result is row order[i] of this one; int64 [rows of the result]."""
        return self._with_planes(
            {name: plane.index_select(0, order) for name, plane in self.planes.items()}
        )

    def _with_planes(self, planes: Mapping[str, Tensor]) -> "QuantizedMatrix":
        return QuantizedMatrix(
            type_name=self.type_name,
            num_rows=planes["low"].shape[0],
            num_columns=self.num_columns,
            planes=planes,
        )


def _aligned(plane: Tensor) -> Tensor:
    """Kernels are built for addresses that are multiples of 16, and built anew for others."""
    return plane if plane.data_ptr() % 16 == 0 else plane.clone()


def join_rows(matrices: Sequence[QuantizedMatrix]) -> QuantizedMatrix:
    """One below the other, so that one launch serves all. ValueError where they do not fit."""
    kinds = {(matrix.type_name, matrix.num_columns) for matrix in matrices}
    if len(kinds) != 1:
        raise ValueError(f"Only matrices of one type and width can be joined, not {sorted(kinds)}.")
    (type_name, num_columns) = kinds.pop()
    return QuantizedMatrix(
        type_name=type_name,
        num_rows=sum(matrix.num_rows for matrix in matrices),
        num_columns=num_columns,
        planes={
            name: torch.cat([matrix.planes[name] for matrix in matrices])
            for name in matrices[0].planes
        },
    )


def half_split_order(num_rows: int, num_heads: int) -> Tensor:
    """The order of rows that undoes what GGUF does to the Q and K weights of `llama`: int64.

    There the two halves of a head, which rotate together, lie interleaved: row 2 * i + h of a head
    is row h * dim / 2 + i of the original. `num_heads`: of KV heads for K.
    """
    if num_rows % (2 * num_heads):
        raise ValueError(f"{num_rows:,} rows are no {num_heads} heads of an even size.")
    rows = torch.arange(num_rows).view(num_heads, num_rows // num_heads // 2, 2)
    return rows.transpose(1, 2).reshape(-1)
