"""Attention of several new tokens per sequence."""

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.extend_attention import extend_attention, extend_attention_reference
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory
from tests.kernels.sequences import Paged, naive_attention, paged

F32, F16, BF16, I8 = torch.float32, torch.float16, torch.bfloat16, torch.int8

# (length, how many of its last tokens are new): all, the last one, some, none, more than a tile.
SEQUENCES = ((5, 5), (33, 1), (40, 9), (16, 0), (60, 28))


def case(
    num_kv_heads: int, group: int, head_dim: int, dtype: torch.dtype, kv_dtype: torch.dtype
) -> tuple[Paged, Tensor, Tensor]:
    """The sequences, their queries, and where each one's queries begin."""
    sequences = paged([length for length, _ in SEQUENCES], num_kv_heads, head_dim, kv_dtype, seed=1)
    counts = torch.tensor([0, *(new for _, new in SEQUENCES)])
    starts = counts.cumsum(0).int()
    generator = torch.Generator().manual_seed(2)
    shape = (int(starts[-1]), num_kv_heads * group, head_dim)
    return sequences, torch.randn(shape, generator=generator).to(dtype), starts


def exact_answer(
    queries: Tensor, sequences: Paged, scale: float, window: int, softcap: float
) -> Tensor:
    rows = []
    for index, (length, new) in enumerate(SEQUENCES):
        for position in range(length - new, length):
            rows.append(
                naive_attention(
                    queries[len(rows)],
                    sequences.keys[index][: position + 1],
                    sequences.values[index][: position + 1],
                    scale,
                    window,
                    softcap,
                )
            )
    return torch.stack(rows)


CASES = [
    pytest.param(F32, F32, 2, 1, 64, 0, 0.0, id="f32-mha"),
    pytest.param(F32, F32, 1, 8, 16, 5, 0.0, id="f32-mqa-window-within-a-block"),
    pytest.param(F16, F16, 2, 3, 80, 0, 50.0, id="f16-group3-dim80-softcap"),
    pytest.param(BF16, BF16, 1, 4, 64, 20, 30.0, id="bf16-group4-window-softcap"),
    pytest.param(F32, I8, 2, 3, 80, 17, 0.0, id="f32-on-int8-dim80-window"),
    pytest.param(BF16, I8, 1, 4, 64, 0, 20.0, id="bf16-on-int8-softcap"),
]
NAMES = ("dtype", "kv_dtype", "num_kv_heads", "group", "head_dim", "window", "softcap")


@pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])
@pytest.mark.parametrize(NAMES, CASES)
def test_every_token_sees_what_came_before_it_and_itself(
    memory: Memory,
    is_kernel: bool,
    dtype: torch.dtype,
    kv_dtype: torch.dtype,
    num_kv_heads: int,
    group: int,
    head_dim: int,
    window: int,
    softcap: float,
) -> None:
    sequences, queries, starts = case(num_kv_heads, group, head_dim, dtype, kv_dtype)
    arguments = (queries, sequences.kv, sequences.tables, starts, sequences.lengths)
    options = {"scale": head_dim**-0.5, "window": window, "softcap": softcap}
    if is_kernel:
        with interpreted():
            answer = extend_attention(*arguments, **options)
    else:
        answer = extend_attention_reference(*arguments, **options)
    assert answer.dtype == dtype
    exact = exact_answer(queries, sequences, head_dim**-0.5, window, softcap)
    # The kernel rounds the weights of the values to the type of the model, too.
    assert_close_to_exact(answer, exact, rounds_within=dtype if is_kernel else F32)


def test_the_reference_takes_long_prompts_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.extend_attention.REFERENCE_ROWS", 4)
    sequences, queries, starts = case(1, 2, 32, F32, F32)
    answer = extend_attention_reference(
        queries, sequences.kv, sequences.tables, starts, sequences.lengths, scale=0.2, window=6
    )
    assert_close_to_exact(answer, exact_answer(queries, sequences, 0.2, 6, 0.0))


def test_query_starts_that_do_not_fit_are_named() -> None:
    sequences, queries, starts = case(1, 2, 32, F32, F32)
    with pytest.raises(ValueError, match="Query starts must be"):
        extend_attention(
            queries, sequences.kv, sequences.tables, starts[1:], sequences.lengths, scale=1.0
        )
