"""What is done to rows of logits before the draw."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels import logits as operations
from kernels.choice import interpreted
from tests.kernels.closeness import assert_close_to_exact
from tests.kernels.memory import Memory

VOCAB = 77
NO_TOKEN = -1

WAYS = pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])


# The interpreter computes both sides of a choice, where a card has infinity without a word.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in divide")


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "COLUMNS", 32)


def rows(memory: Memory, num_rows: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return memory.guarded(torch.randn(num_rows, VOCAB, generator=generator) * 5)


def apply(is_kernel: bool, name: str, *arguments: Any) -> None:
    operation: Callable[..., None] = getattr(operations, name)
    if not is_kernel:
        getattr(operations, f"{name}_reference")(*arguments)
        return
    with interpreted():
        operation(*arguments)


def whole(*numbers: list[int]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


@WAYS
def test_biases_are_added_where_a_token_stands(memory: Memory, is_kernel: bool) -> None:
    logits = rows(memory)
    expected = logits.clone()
    ids = whole([0, 76], [5, NO_TOKEN], [NO_TOKEN, NO_TOKEN])
    apply(is_kernel, "apply_biases", logits, ids, torch.tensor([[1, -torch.inf], [-2, 9], [9, 9]]))
    expected[0, 0] += 1
    expected[0, 76] = -torch.inf
    expected[1, 5] -= 2
    assert torch.equal(logits, expected)


def packed(is_allowed: Tensor) -> Tensor:
    """[m, vocab] -> [m, words], the first token in the lowest bit."""
    words = torch.zeros(is_allowed.shape[0], -(-VOCAB // 32), dtype=torch.int64)
    for token in range(VOCAB):
        words[:, token // 32] |= is_allowed[:, token].long() << token % 32
    return words.int()


@WAYS
@pytest.mark.parametrize("chosen", [None, [2, 0]], ids=["all-rows", "some-rows"])
def test_a_bitmask_leaves_what_is_allowed(
    memory: Memory, is_kernel: bool, chosen: list[int] | None
) -> None:
    logits = rows(memory)
    expected = logits.clone()
    targets = chosen if chosen is not None else [0, 1, 2]
    is_allowed = torch.rand(len(targets), VOCAB, generator=torch.Generator().manual_seed(2)) < 0.4
    # The sign bit of a word, and the last token.
    is_allowed[0, 31], is_allowed[-1, 76] = True, False
    for index, row in enumerate(targets):
        expected[row, ~is_allowed[index]] = -torch.inf
    which = None if chosen is None else torch.tensor(chosen, dtype=torch.int32)
    apply(is_kernel, "apply_bitmask", logits, packed(is_allowed), which)
    assert torch.equal(logits, expected)


@WAYS
def test_penalties_are_those_of_the_formulae(memory: Memory, is_kernel: bool) -> None:
    logits = rows(memory, 2)
    logits[0, 3], logits[0, 4], logits[0, 5], logits[1, 6] = 2.0, -2.0, -torch.inf, 3e38
    before = logits.double()
    ids = whole([3, 4, 5, 70], [6, 7, NO_TOKEN, NO_TOKEN])
    recent = whole([1, 2, 1, 0], [1, 0, 5, 5])
    answered = whole([0, 3, 1, 2], [0, 1, 5, 5])
    repetition, frequency, presence = (
        torch.tensor(x) for x in ([1.5, 0.5], [0.25, 0.5], [2.0, 1.0])
    )
    apply(
        is_kernel,
        "apply_penalties",
        logits,
        ids,
        recent,
        answered,
        repetition,
        frequency,
        presence,
    )
    expected = before.clone()
    expected[0, 3] = 2 / 1.5
    expected[0, 4] = -2 * 1.5 - (0.25 * 3 + 2)
    expected[0, 70] -= 0.25 * 2 + 2
    # What would pass beyond all numbers stays the largest of them.
    expected[1, 6] = torch.finfo(torch.float32).max
    expected[1, 7] -= 0.5 + 1
    assert logits[0, 5] == -torch.inf
    expected[0, 5] = logits[0, 5] = 0
    torch.testing.assert_close(logits.double(), expected, rtol=1e-6, atol=1e-6)


@WAYS
def test_a_temperature_divides_and_none_leaves_a_row(memory: Memory, is_kernel: bool) -> None:
    logits = rows(memory)
    before = logits.clone()
    apply(is_kernel, "apply_temperature", logits, torch.tensor([0.5, 0.0, 3.0]))
    assert torch.equal(logits[0], before[0] * 2) and torch.equal(logits[1], before[1])
    assert_close_to_exact(logits[2], before[2].double() / 3)


@WAYS
def test_a_softcap_bends_large_logits(memory: Memory, is_kernel: bool) -> None:
    logits = rows(memory)
    logits[0, :3] = torch.tensor([1e4, -1e4, 0.0])
    before = logits.double()
    apply(is_kernel, "apply_softcap", logits, 30.0)
    assert_close_to_exact(logits, 30 * torch.tanh(before / 30))


def test_arguments_that_do_not_go_together_are_named() -> None:
    logits = torch.zeros(2, VOCAB)
    with pytest.raises(ValueError, match="Logits must be"):
        operations.apply_softcap(logits.half(), 30.0)
    with pytest.raises(ValueError, match="cap must be above 0"):
        operations.apply_softcap(logits, 0.0)
    with pytest.raises(ValueError, match="The bitmask must be \\[2, 3\\] int32"):
        operations.apply_bitmask(logits, torch.zeros(2, 2, dtype=torch.int32))
    with pytest.raises(ValueError, match="Each of 2 rows needs one"):
        operations.apply_temperature(logits, torch.zeros(3))
    with pytest.raises(ValueError, match="Beside tokens"):
        operations.apply_biases(logits, whole([1], [2]), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="Tokens must be"):
        operations.apply_biases(logits, whole([1]), torch.zeros(1, 1))
    with pytest.raises(ValueError, match="Rows must be"):
        operations.apply_bitmask(logits, torch.zeros(1, 3, dtype=torch.int32), torch.zeros(1))
