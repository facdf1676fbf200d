"""Quantised weights of any type as numbers, by ggml's own functions."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.library import bindings
from engine.errors import ModelUnsupported


class _Traits(ctypes.Structure):
    """`ggml_type_traits` of ggml.h, as far as it is needed here."""

    _fields_ = [
        ("type_name", ctypes.c_char_p),
        ("block_numbers", ctypes.c_int64),
        ("interleaved_numbers", ctypes.c_int64),
        ("block_bytes", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        (
            "to_float",
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64),
        ),
    ]


def to_float(kind: int, data: NDArray[np.uint8], width: int) -> NDArray[np.float32]:
    """`[num_rows, width]` of the bytes of whole rows; `kind` is ggml's number of the type.

    Raises ModelUnsupported for a type that ggml cannot turn into numbers.
    """
    find = bindings._lib.ggml_get_type_traits
    find.argtypes, find.restype = [ctypes.c_int], ctypes.POINTER(_Traits)
    traits = find(kind).contents
    if not traits.to_float or width % traits.block_numbers:
        raise ModelUnsupported(
            f"Weights of ggml's type {kind} in rows of {width:,} cannot be read here: choose a file"
            " in Q4_K_M or Q8_0."
        )
    row_bytes = width // traits.block_numbers * traits.block_bytes
    assert len(data) % row_bytes == 0 and data.flags.c_contiguous
    found = np.empty((len(data) // row_bytes, width), np.float32)
    traits.to_float(data.ctypes.data, found.ctypes.data, found.size)
    return found
