"""How fast llama.cpp's own kernels multiply a quantised matrix: what a model's steps are made of.

A product of the library itself, not of numpy's: it has other kernels for each type of weights and
each kind of processor, and those are what a model runs on. As in a model that is loaded, the
weights are packed anew where the processor has kernels for that.
"""

import ctypes
from contextlib import ExitStack
from itertools import takewhile
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.gguf_header import BLOCKS
from engine.backends.llama_cpp.library import bindings
from engine.errors import InvalidParams, OutOfMemory

_PLAIN = (
    *("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"),
)
TYPES: Final[dict[str, int]] = {
    block.name: number for number, block in BLOCKS.items() if block.name in _PLAIN
}
"""The types of weights that can be measured, by the numbers that GGUF gives them: those that are
made of numbers without knowing which of these matter."""

WIDTH = 2048
"""Rows and columns: weights of a few megabytes, as a layer of a usual model has them."""
NUM_TOKENS = 256
"""A piece of a prompt: enough that arithmetic and not memory is what it waits for."""
_CPU = 0
_DISTINCT_ROWS = 16
_HEAD_BYTES = 1 << 20


class _InitParams(ctypes.Structure):
    _fields_ = [
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    ]


def multiply_adds_per_second(
    type_name: str, num_threads: int, *, num_tokens: int = NUM_TOKENS, seconds: float = 0.4
) -> float:
    """The best of the products of `[WIDTH, WIDTH]` weights and `num_tokens` columns that `seconds`
    have room for, two of them at least. Raises InvalidParams for a type that is not in TYPES."""
    if type_name not in TYPES:
        raise InvalidParams(
            f"How fast {type_name} is multiplied cannot be measured: choose one of"
            f" {', '.join(TYPES)}."
        )
    best = float("inf")
    with ExitStack() as stack:
        product = Product(stack, TYPES[type_name], num_threads, num_tokens)
        product.compute()
        ends = perf_counter() + seconds
        count = 0
        while count < 2 or perf_counter() < ends:
            began = perf_counter()
            product.compute()
            best = min(best, perf_counter() - began)
            count += 1
    return WIDTH * WIDTH * num_tokens / best


class Product:
    """Weights `[WIDTH, WIDTH]` times `num_tokens` columns, in ggml's memory until `stack` closes.

    Owned by the thread that made it.
    """

    def __init__(self, stack: ExitStack, kind: int, num_threads: int, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._device = _call("ggml_backend_dev_by_type", ctypes.c_void_p, ctypes.c_int(_CPU))
        registry = _call("ggml_backend_dev_backend_reg", ctypes.c_void_p, self._device)
        self._backend = _call("ggml_backend_dev_init", ctypes.c_void_p, self._device, None)
        stack.callback(_call, "ggml_backend_free", None, self._backend)
        set_threads = _found(registry, b"ggml_backend_set_n_threads", None, ctypes.c_int)
        if set_threads is not None:
            set_threads(self._backend, num_threads)
        usual = _call("ggml_backend_dev_buffer_type", ctypes.c_void_p, self._device)
        for place in (*_packing_places(registry, self._device), usual):
            with ExitStack() as trial:
                if self._lay_out(trial, place, kind):
                    stack.push(trial.pop_all())
                    return
        raise InvalidParams("llama.cpp has no product of such weights: choose another type.")

    def compute(self) -> None:
        if _call("ggml_backend_graph_compute", ctypes.c_int, self._backend, self._graph) != 0:
            raise OutOfMemory("A product of matrices could not be computed: close other programs.")

    def result(self) -> NDArray[np.float32]:
        """`[num_tokens, WIDTH]`, once it is computed."""
        found = np.empty((self._num_tokens, WIDTH), np.float32)
        _move("ggml_backend_tensor_get", self._product, found)
        return found

    def _lay_out(self, stack: ExitStack, place: Any, kind: int) -> bool:
        """With the weights at `place`. False: it does not take them."""
        held, free = _context(stack), _context(stack)
        weights = _tensor(held, kind, WIDTH, WIDTH)
        columns = _tensor(free, TYPES["F32"], WIDTH, self._num_tokens)
        self._product = _call("ggml_mul_mat", ctypes.c_void_p, free, weights, columns)
        _place(stack, "ggml_backend_alloc_ctx_tensors_from_buft", held, place)
        if not _call("ggml_backend_dev_supports_op", ctypes.c_bool, self._device, self._product):
            return False
        _place(stack, "ggml_backend_alloc_ctx_tensors", free, self._backend)
        _move("ggml_backend_tensor_set", weights, quantised_weights(kind))
        _move("ggml_backend_tensor_set", columns, random_numbers(self._num_tokens))
        self._graph = _call("ggml_new_graph", ctypes.c_void_p, free)
        _call("ggml_build_forward_expand", None, self._graph, self._product)
        return True


def _packing_places(registry: Any, device: Any) -> list[Any]:
    """Kinds of memory in which weights are packed for this processor, the best first."""
    places = _found(registry, b"ggml_backend_dev_get_extra_bufts", ctypes.POINTER(ctypes.c_void_p))
    found = places(device) if places is not None else None
    if not found:
        return []
    return list(takewhile(bool, (found[number] for number in range(16))))


def _context(stack: ExitStack) -> Any:
    params = _InitParams(_HEAD_BYTES, None, True)
    context = _call("ggml_init", ctypes.c_void_p, params)
    stack.callback(_call, "ggml_free", None, context)
    return context


def _tensor(context: Any, kind: int, width: int, height: int) -> Any:
    sizes = ctypes.c_int64(width), ctypes.c_int64(height)
    return _call("ggml_new_tensor_2d", ctypes.c_void_p, context, ctypes.c_int(kind), *sizes)


def _place(stack: ExitStack, name: str, context: Any, where: Any) -> None:
    buffer = _call(name, ctypes.c_void_p, context, where)
    if not buffer:
        raise OutOfMemory("There is no memory for a product of matrices: close other programs.")
    stack.callback(_call, "ggml_backend_buffer_free", None, buffer)


def _move(name: str, tensor: Any, data: NDArray[Any]) -> None:
    """All of it, into the tensor or out of it."""
    place, size = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
    _call(name, None, tensor, place, ctypes.c_size_t(0), size)


def random_numbers(height: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((height, WIDTH), np.float32)


def quantised_weights(kind: int) -> NDArray[np.uint8]:
    """Weights of that type; a few rows again and again, because some types are slow to make."""
    rows = random_numbers(_DISTINCT_ROWS)
    row_bytes = _call("ggml_row_size", ctypes.c_size_t, ctypes.c_int(kind), ctypes.c_int64(WIDTH))
    made = np.empty((_DISTINCT_ROWS, row_bytes), np.uint8)
    if kind == TYPES["F32"]:
        made = rows.view(np.uint8)
    else:
        _call(
            "ggml_quantize_chunk",
            ctypes.c_size_t,
            ctypes.c_int(kind),
            ctypes.c_void_p(rows.ctypes.data),
            ctypes.c_void_p(made.ctypes.data),
            ctypes.c_int64(0),
            ctypes.c_int64(_DISTINCT_ROWS),
            ctypes.c_int64(WIDTH),
            None,
        )
    return np.tile(made, (WIDTH // _DISTINCT_ROWS, 1))


def _found(registry: Any, name: bytes, result: Any, *more: Any) -> Any:
    """A function that a backend may have: of the thing itself, and `more`. None: it has not."""
    address = _call("ggml_backend_reg_get_proc_address", ctypes.c_void_p, registry, name)
    return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *more)(address) if address else None


def _call(name: str, result: Any, *arguments: Any) -> Any:
    """Call into ggml; a plain address is passed as one, and not cut to an int."""
    function = getattr(bindings._lib, name)
    function.restype = result
    return function(
        *(ctypes.c_void_p(each) if isinstance(each, int) else each for each in arguments)
    )
