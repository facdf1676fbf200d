"""Attention of one new token per sequence."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.configs import Tile
from kernels.decode_attention import decode_attention, decode_attention_reference
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory
from tests.kernels.sequences import Paged, naive_attention, paged

F32, F16, BF16, I8 = torch.float32, torch.float16, torch.bfloat16, torch.int8

# One token, a block less one, a block, a block and one, several blocks, and a padded row.
LENGTHS = (1, 15, 16, 17, 50, 0)


def queries_for(sequences: Paged, num_heads: int, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(9)
    shape = (len(sequences.lengths), num_heads, sequences.kv.head_dim)
    return torch.randn(shape, generator=generator).to(dtype)


def exact_answer(
    queries: Tensor, sequences: Paged, scale: float, window: int, softcap: float
) -> Tensor:
    rows = zip(queries, sequences.keys, sequences.values, strict=True)
    return torch.stack([naive_attention(q, k, v, scale, window, softcap) for q, k, v in rows])


CASES = [
    pytest.param(F32, F32, 2, 1, 64, 0, 0.0, id="f32-mha"),
    pytest.param(F32, F32, 1, 8, 16, 5, 0.0, id="f32-mqa-window-within-a-block"),
    pytest.param(F16, F16, 2, 3, 80, 0, 50.0, id="f16-group3-dim80-softcap"),
    pytest.param(BF16, BF16, 2, 4, 64, 20, 30.0, id="bf16-group4-window-softcap"),
    pytest.param(BF16, F16, 1, 3, 96, 0, 0.0, id="bf16-on-f16-pool-dim96"),
    pytest.param(F32, I8, 2, 3, 80, 17, 0.0, id="f32-on-int8-dim80-window"),
    pytest.param(BF16, I8, 1, 4, 64, 0, 20.0, id="bf16-on-int8-softcap"),
]
NAMES = ("dtype", "kv_dtype", "num_kv_heads", "group", "head_dim", "window", "softcap")


@pytest.mark.parametrize(NAMES, CASES)
def test_the_reference_is_softmax_attention(
    dtype: torch.dtype,
    kv_dtype: torch.dtype,
    num_kv_heads: int,
    group: int,
    head_dim: int,
    window: int,
    softcap: float,
) -> None:
    sequences = paged(LENGTHS, num_kv_heads, head_dim, kv_dtype, seed=1)
    queries = queries_for(sequences, num_kv_heads * group, dtype)
    scale = head_dim**-0.5
    answer = decode_attention_reference(
        queries,
        sequences.kv,
        sequences.tables,
        sequences.lengths,
        scale=scale,
        window=window,
        softcap=softcap,
    )
    assert answer.dtype == dtype
    assert_close_to_exact(answer, exact_answer(queries, sequences, scale, window, softcap))


@pytest.mark.parametrize(NAMES, CASES)
def test_the_kernel_is_softmax_attention(
    memory: Memory,
    dtype: torch.dtype,
    kv_dtype: torch.dtype,
    num_kv_heads: int,
    group: int,
    head_dim: int,
    window: int,
    softcap: float,
) -> None:
    sequences = paged(LENGTHS, num_kv_heads, head_dim, kv_dtype, seed=1)
    queries = queries_for(sequences, num_kv_heads * group, dtype)
    scale = head_dim**-0.5
    with interpreted():
        answer = decode_attention(
            queries,
            sequences.kv,
            sequences.tables,
            sequences.lengths,
            scale=scale,
            window=window,
            softcap=softcap,
        )
    assert answer.dtype == dtype
    exact = exact_answer(queries, sequences, scale, window, softcap)
    # The weights of the values are rounded to the type of the model, too.
    assert_close_to_exact(answer, exact, rounds_within=dtype)


def with_small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.decode_attention.decode_tile", lambda *_: Tile(16, 16, 4, 2))


@pytest.mark.parametrize("window", [0, 20], ids=["all", "window"])
def test_a_kv_in_pieces_of_which_some_are_empty_gives_the_same(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    with_small_tiles(monkeypatch)
    sequences = paged((1, 33, 70, 0), 2, 64, F32, seed=2)
    queries = queries_for(sequences, 4, F32)
    with interpreted():
        answer = decode_attention(
            queries, sequences.kv, sequences.tables, sequences.lengths, scale=0.2, window=window
        )
    assert_close_to_exact(answer, exact_answer(queries, sequences, 0.2, window, 0.0))


def test_the_answer_of_a_row_does_not_depend_on_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_small_tiles(monkeypatch)
    sequences = paged((40, 7), 1, 32, F32, seed=3)
    queries = queries_for(sequences, 2, F32)

    def answers(rows: Sequence[int]) -> Tensor:
        chosen = list(rows)
        with interpreted():
            return decode_attention(
                queries[chosen],
                sequences.kv,
                sequences.tables[chosen],
                sequences.lengths[chosen],
                scale=0.2,
            )

    assert torch.equal(answers([0, 1])[0], answers([0, 0])[0])


def test_queries_may_lie_in_a_wider_row(memory: Memory) -> None:
    sequences = paged((20, 3), 1, 32, F32, seed=4)
    wide = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(5))
    queries = wide[:, 1:3]
    with interpreted():
        answer = decode_attention(
            queries, sequences.kv, sequences.tables, sequences.lengths, scale=0.2
        )
    assert_close_to_exact(answer, exact_answer(queries, sequences, 0.2, 0, 0.0))


def test_arguments_that_do_not_go_together_are_named() -> None:
    sequences = paged((20, 3), 2, 32, F32, seed=4)
    good = torch.zeros(2, 4, 32)

    def call(
        queries: Tensor = good,
        tables: Tensor = sequences.tables,
        lengths: Tensor = sequences.lengths,
        window: int = 0,
    ) -> None:
        decode_attention(queries, sequences.kv, tables, lengths, scale=1.0, window=window)

    call()
    with pytest.raises(ValueError, match="3 heads of 32 numbers do not go with 2 KV heads"):
        call(queries=torch.zeros(2, 3, 32))
    with pytest.raises(ValueError, match="do not go with lengths"):
        call(lengths=sequences.lengths[:1])
    with pytest.raises(ValueError, match="must be int32"):
        call(tables=sequences.tables.long())
    with pytest.raises(ValueError, match="0 \\(none\\) or above"):
        call(window=-1)
