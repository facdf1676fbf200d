"""llama.cpp's attention, as packaging/engine_attention.cmake leaves it, beside numpy's.

It is computed by one of three ways: a query alone, few queries one by one or in a tile, many in
tiles. Whoever sees what, all must give what the definition gives.
"""

import ctypes
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.llama_cpp import matrix_product as ggml

F32, F16 = ggml.TYPES["F32"], ggml.TYPES["F16"]
HIDDEN = np.float16(-np.inf)
MOST = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`bias`: the most that ALiBi takes off; `cap`: of the scores; `sinks`: a score that each head
    gives to nothing."""

    num_queries: int
    num_cells: int = 640
    num_heads: int = 9
    num_kv_heads: int = 3
    width: int = 64
    num_threads: int = 2
    bias: float = 0.0
    cap: float = 0.0
    has_sinks: bool = False
    has_mask: bool = True


Floats = NDArray[np.float32]


def numbers(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def computed(case: Case, mask: NDArray[np.float16] | None) -> Floats:
    """`[num_queries, num_heads, width]`, by llama.cpp."""
    q, k, v, sinks = inputs(case)
    with ExitStack() as stack:
        device = ggml._call("ggml_backend_dev_by_type", ctypes.c_void_p, ctypes.c_int(0))
        registry = ggml._call("ggml_backend_dev_backend_reg", ctypes.c_void_p, device)
        backend = ggml._call("ggml_backend_dev_init", ctypes.c_void_p, device, None)
        stack.callback(ggml._call, "ggml_backend_free", None, backend)
        set_threads = ggml._found(registry, b"ggml_backend_set_n_threads", None, ctypes.c_int)
        set_threads(backend, case.num_threads)
        context = ggml._context(stack)
        tensors = [
            (tensor(context, F32, q), q),
            (tensor(context, F16, k), k.astype(np.float16)),
            (tensor(context, F16, v), v.astype(np.float16)),
        ]
        if mask is not None:
            tensors.append((tensor(context, F16, mask[None]), mask))
        places = [place for place, _ in tensors[:3]]
        result = ggml._call(
            "ggml_flash_attn_ext",
            ctypes.c_void_p,
            context,
            *places,
            tensors[3][0] if mask is not None else None,
            *(ctypes.c_float(each) for each in (scale(case), case.bias, case.cap)),
        )
        if case.has_sinks:
            place = tensor(context, F32, sinks[None, None])
            ggml._call("ggml_flash_attn_ext_add_sinks", None, result, place)
            tensors.append((place, sinks))
        ggml._place(stack, "ggml_backend_alloc_ctx_tensors", context, backend)
        for place, data in tensors:
            ggml._move("ggml_backend_tensor_set", place, np.ascontiguousarray(data))
        graph = ggml._call("ggml_new_graph", ctypes.c_void_p, context)
        ggml._call("ggml_build_forward_expand", None, graph, result)
        assert ggml._call("ggml_backend_graph_compute", ctypes.c_int, backend, graph) == 0
        found = np.empty((case.num_queries, case.num_heads, case.width), np.float32)
        ggml._move("ggml_backend_tensor_get", result, found)
        return found


def tensor(context: object, kind: int, data: NDArray[np.generic]) -> object:
    """Of three dimensions, the last of numpy's being the first of ggml's."""
    sizes = [ctypes.c_int64(each) for each in data.shape[::-1]]
    return ggml._call("ggml_new_tensor_3d", ctypes.c_void_p, context, ctypes.c_int(kind), *sizes)


def inputs(case: Case) -> tuple[Floats, Floats, Floats, Floats]:
    return (
        numbers(1, case.num_heads, MOST, case.width)[:, : case.num_queries],
        numbers(2, case.num_kv_heads, case.num_cells, case.width),
        numbers(3, case.num_kv_heads, case.num_cells, case.width),
        numbers(4, case.num_heads),
    )


def scale(case: Case) -> float:
    return float(case.width**-0.5)


def defined(case: Case, mask: NDArray[np.float16] | None) -> Floats:
    """The same by the definition, in double precision."""
    q, k, v, sinks = inputs(case)
    keys, values = (each.astype(np.float16).astype(np.float64) for each in (k, v))
    found = np.empty((case.num_queries, case.num_heads, case.width), np.float64)
    group = case.num_heads // case.num_kv_heads
    for head in range(case.num_heads):
        scores = q[head].astype(np.float64) @ keys[head // group].T * scale(case)
        if case.cap:
            scores = case.cap * np.tanh(scores / case.cap)
        if mask is not None:
            scores = scores + slope(case, head) * mask.astype(np.float64)
        most = np.maximum(scores.max(axis=1), sinks[head] if case.has_sinks else -np.inf)
        weights = np.exp(scores - most[:, None])
        total = weights.sum(axis=1) + (np.exp(sinks[head] - most) if case.has_sinks else 0.0)
        found[:, head] = weights @ values[head // group] / total[:, None]
    return found.astype(np.float32)


def slope(case: Case, head: int) -> float:
    """ALiBi's, where the number of heads is a power of two."""
    return 2.0 ** (-case.bias * (head + 1) / case.num_heads) if case.bias else 1.0


def causal(case: Case, window: int | None = None) -> NDArray[np.float16]:
    """The queries are the newest tokens of one sequence."""
    places = np.arange(case.num_cells)
    of_queries = case.num_cells - case.num_queries + np.arange(case.num_queries)
    ago = of_queries[:, None] - places
    seen = (ago >= 0) & ((ago < window) if window is not None else True)
    return np.where(seen, np.where(case.bias > 0, -ago, 0), HIDDEN).astype(np.float16)


def scattered(case: Case) -> NDArray[np.float16]:
    """Each query in one of four sequences, whose cells lie among each other's in runs of 24."""
    owners = (np.arange(case.num_cells) // 24) % 4
    of_queries = np.arange(case.num_queries) % 4
    return np.where(of_queries[:, None] == owners, 0, HIDDEN).astype(np.float16)


def check(case: Case, mask: NDArray[np.float16] | None) -> None:
    found, expected = computed(case, mask), defined(case, mask)
    # One query alone, or a few, sum up in half precision.
    tolerance = 2e-3 if case.num_queries >= 64 else 1e-2
    np.testing.assert_allclose(found, expected, atol=tolerance)


COUNTS = [1, 2, 4, 5, 6, 7, 12, 17, 31, 63, 64, 65, 100, MOST]


@pytest.mark.parametrize("num_threads", [1, 2, 3, 12])
@pytest.mark.parametrize("num_queries", COUNTS)
def test_the_newest_tokens_see_all_before_them(num_queries: int, num_threads: int) -> None:
    case = Case(num_queries=num_queries, num_threads=num_threads)
    check(case, causal(case))


@pytest.mark.parametrize("num_queries", COUNTS)
def test_a_window_hides_what_lies_before_it(num_queries: int) -> None:
    case = Case(num_queries=num_queries, num_cells=1024)
    check(case, causal(case, window=40))
    check(case, causal(case, window=600))


@pytest.mark.parametrize("num_queries", COUNTS)
def test_conversations_whose_cells_lie_among_each_other_see_their_own(num_queries: int) -> None:
    case = Case(num_queries=num_queries)
    check(case, scattered(case))


@pytest.mark.parametrize("num_queries", COUNTS)
def test_scores_are_capped_and_sink_and_fall_with_the_distance(num_queries: int) -> None:
    case = Case(num_queries=num_queries, num_heads=8, num_kv_heads=2, cap=5.0, has_sinks=True)
    check(case, causal(case))
    distant = Case(num_queries=num_queries, num_heads=8, num_kv_heads=8, bias=8.0)
    check(distant, causal(distant))


@pytest.mark.parametrize("width", [40, 80, 96, 128, 256])
@pytest.mark.parametrize("num_queries", [6, 33, 70])
def test_heads_of_any_width(num_queries: int, width: int) -> None:
    case = Case(num_queries=num_queries, width=width, num_heads=4, num_kv_heads=1)
    check(case, causal(case))


@pytest.mark.parametrize("num_queries", COUNTS)
def test_nothing_is_hidden_without_a_mask(num_queries: int) -> None:
    # Cells that fill no tile: what stands behind the last one has no weight.
    case = Case(num_queries=num_queries, num_cells=620)
    check(case, None)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_each_query_sees(seed: int) -> None:
    random = np.random.default_rng(seed)
    case = Case(num_queries=int(random.integers(5, 64)), num_threads=int(random.integers(1, 5)))
    seen = random.random((case.num_queries, case.num_cells)) < random.choice([0.01, 0.2, 0.9])
    # Whole stretches, as they are hidden in a memory that many conversations share.
    for query in range(case.num_queries):
        start = int(random.integers(0, case.num_cells))
        seen[query, start : start + int(random.integers(0, 200))] = False
        seen[query, int(random.integers(0, case.num_cells))] = True
    check(case, np.where(seen, 0, HIDDEN).astype(np.float16))


@pytest.mark.parametrize("count", [7, 20, 33, 47])
def test_a_query_has_the_same_bits_whatever_stands_beside_it_in_a_tile(count: int) -> None:
    many, few = Case(num_queries=64), Case(num_queries=count)
    mask = causal(many)
    assert np.array_equal(computed(few, mask[:count]), computed(many, mask)[:count])


@pytest.mark.parametrize("count", [2, 7, 20, 47])
def test_in_a_short_conversation_a_query_has_the_bits_that_it_has_beside_others(count: int) -> None:
    """So the same question has the same answer, whether its beginning was held or not."""
    many, few = Case(num_queries=63, num_cells=500), Case(num_queries=count, num_cells=500)
    mask = causal(many)
    assert np.array_equal(computed(few, mask[:count]), computed(many, mask)[:count])
