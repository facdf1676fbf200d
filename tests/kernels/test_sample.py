"""The draw is what sorting the whole row would give."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels.choice import interpreted
from kernels.philox import uniform_reference
from kernels.sample import sample
from tests.kernels.memory import Memory

WAYS = pytest.mark.parametrize("is_kernel", [False, True], ids=["reference", "kernel"])

OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a row has several, and the last is not full."""
    monkeypatch.setattr("kernels.sample.COLUMNS", 16)


def naive_draw(
    row: list[float],
    number: float,
    *,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    filter_temperature: float = 1.0,
) -> int:
    """By sorting, in Python's float64."""
    finite = [token for token, x in enumerate(row) if not math.isnan(x) and x > -math.inf]
    if not finite:
        return -1
    order = sorted(finite, key=lambda token: (-row[token], token))
    if temperature == 0:
        return order[0]
    highest = row[order[0]]
    kept = order[: top_k or None]
    weights = [math.exp((row[token] - highest) / filter_temperature) for token in kept]
    if top_p < 1:
        mass, num_kept = 0.0, 0
        while num_kept == 0 or mass < top_p * sum(weights):
            mass += weights[num_kept]
            num_kept += 1
        kept = kept[:num_kept]
    kept = [token for token, weight in zip(kept, weights, strict=False) if weight >= min_p]
    chances = [math.exp((row[token] - highest) / temperature) for token in sorted(kept)]
    goal, passed = number * sum(chances), 0.0
    for token, chance in zip(sorted(kept), chances, strict=True):
        passed += chance
        if passed > goal:
            return token
    raise AssertionError("The goal lies within the sum.")


def draw(
    is_kernel: bool, logits: Tensor, requests: list[dict[str, Any]], first: int = 0
) -> list[int]:
    """One token per row, at the positions from `first` on, with the number of the row as seed."""

    def column(name: str, dtype: torch.dtype) -> Tensor:
        return torch.tensor([{**OFF, **request}[name] for request in requests], dtype=dtype)

    arguments: dict[str, Any] = {
        "temperatures": column("temperature", torch.float32),
        "top_k": column("top_k", torch.int32),
        "top_p": column("top_p", torch.float32),
        "min_p": column("min_p", torch.float32),
        "seeds": torch.arange(len(requests)),
        "positions": torch.arange(len(requests)) + first,
    }
    if any("filter_temperature" in request for request in requests):
        arguments["filter_temperatures"] = torch.tensor(
            [request.get("filter_temperature", 1.0) for request in requests]
        )
    if not is_kernel:
        return sample(logits, **arguments).tolist()
    with interpreted():
        return sample(logits, **arguments).tolist()


def expected(logits: Tensor, requests: list[dict[str, Any]], first: int = 0) -> list[int]:
    rows = torch.arange(len(requests))
    numbers = uniform_reference(rows, rows + first).tolist()
    return [
        naive_draw(row, number, **{**OFF, **request})
        for row, number, request in zip(logits.tolist(), numbers, requests, strict=True)
    ]


REQUESTS: list[dict[str, Any]] = [
    {},
    {"top_k": 5},
    {"top_k": 1},
    {"top_p": 0.6},
    {"top_p": 0.0},
    {"min_p": 0.2},
    {"top_k": 9, "top_p": 0.8, "min_p": 0.05, "temperature": 0.7},
    {"top_k": 9, "top_p": 0.8, "temperature": 1.7, "filter_temperature": 1.7},
    {"temperature": 0.0},
    {"top_k": 1000, "temperature": 0.3},
]


def logits_of(kind: str) -> Tensor:
    """[rows, 41]: all different; in few steps, so that many are equal; most of them banned."""
    logits = torch.randn(len(REQUESTS), 41, generator=torch.Generator().manual_seed(5)) * 2
    if kind == "equals":
        logits = logits.round() / 2
        # Both zeros are one number.
        logits[logits == 0] *= torch.where(torch.arange((logits == 0).sum()) % 2 == 0, 1.0, -1.0)
    if kind == "banned":
        logits[:, torch.arange(41) % 3 != 1] = -torch.inf
        logits[:, 4] = torch.nan
    return logits


@WAYS
@pytest.mark.parametrize("kind", ["different", "equals", "banned"])
def test_a_draw_is_that_of_a_sorted_row(memory: Memory, is_kernel: bool, kind: str) -> None:
    logits = logits_of(kind)
    for first in (0,) if is_kernel else range(0, 300, 10):
        assert draw(is_kernel, logits, REQUESTS, first) == expected(logits, REQUESTS, first)


@WAYS
def test_of_equals_at_the_bound_the_lowest_ids_stay(memory: Memory, is_kernel: bool) -> None:
    """Eight equal logits over three stretches, of which the filters leave three."""
    row = torch.full((40,), -5.0)
    row[[3, 11, 17, 18, 25, 33, 38, 39]] = 1.0
    requests = [{"top_k": 3}, {"top_p": 0.33, "top_k": 8}] * 2
    drawn = draw(is_kernel, row.repeat(len(requests), 1), requests)
    assert set(drawn) <= {3, 11, 17} and len(set(drawn)) > 1


@WAYS
def test_a_row_of_nothing_gives_no_token(memory: Memory, is_kernel: bool) -> None:
    logits = torch.full((2, 20), -torch.inf)
    logits[1, 3] = torch.nan
    assert draw(is_kernel, logits, [{}, {"temperature": 0.0}]) == [-1, -1]


@WAYS
def test_a_row_of_one_token_gives_it(memory: Memory, is_kernel: bool) -> None:
    logits = torch.full((2, 20), -torch.inf)
    logits[:, 17] = -3e38
    assert draw(is_kernel, logits, [{"top_k": 4, "top_p": 0.5}, {"temperature": 1e-3}]) == [17, 17]


@WAYS
def test_a_token_does_not_depend_on_the_batch(memory: Memory, is_kernel: bool) -> None:
    logits = logits_of("different")[:3]
    together = draw(is_kernel, logits, [{"top_p": 0.9}] * 3)
    assert draw(is_kernel, logits[:1], [{"top_p": 0.9}]) == together[:1]


def test_tokens_come_as_often_as_their_probabilities_say() -> None:
    row = torch.tensor([0.0, 1.0, 2.0, -torch.inf])
    num_draws = 20_000
    counts = torch.bincount(
        sample(
            row.repeat(num_draws, 1),
            temperatures=torch.full((num_draws,), 2.0),
            top_k=torch.zeros(num_draws, dtype=torch.int32),
            top_p=torch.ones(num_draws),
            min_p=torch.zeros(num_draws),
            seeds=torch.full((num_draws,), 3),
            positions=torch.arange(num_draws),
        ),
        minlength=4,
    )
    shares = torch.softmax(row / 2, dim=0)
    # Five deviations of a count are below 0.018 of all draws.
    torch.testing.assert_close(counts / num_draws, shares, rtol=0, atol=0.018)
    assert counts[3] == 0


def test_arguments_that_do_not_go_together_are_named() -> None:
    ones, wholes = torch.ones(2), torch.zeros(2, dtype=torch.int64)
    good: dict[str, Tensor] = {
        "temperatures": ones,
        "top_k": wholes.int(),
        "top_p": ones,
        "min_p": ones,
        "seeds": wholes,
        "positions": wholes,
    }
    logits = torch.zeros(2, 9)
    sample(logits, **good)
    with pytest.raises(ValueError, match="top_k must be \\[2\\] torch.int32"):
        sample(logits, **{**good, "top_k": wholes})
    with pytest.raises(ValueError, match="seeds must be \\[2\\]"):
        sample(logits, **{**good, "seeds": wholes[:1]})
