"""A kernel runs where it can, and its reference where it cannot or must not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernels import choice
from kernels.activation import gated, gated_reference
from kernels.card import Card
from kernels.launch import observed, written_down

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def without_gated() -> Iterator[None]:
    choice.switch_off("gated", "It gave wrong numbers on this card.")
    yield
    choice.switch_on("gated")


def test_a_tensor_of_the_processor_takes_the_reference() -> None:
    with observed() as launches:
        gated(torch.zeros(1, 4), "silu")
    assert not launches


def test_the_interpreter_takes_the_kernel() -> None:
    with choice.interpreted(), observed() as launches:
        gated(torch.zeros(1, 4), "silu")
    assert [launch.spec.name for launch in launches] == ["gated_kernel"]


def test_one_that_is_switched_off_takes_the_reference_and_says_why(without_gated: None) -> None:
    x = torch.randn(2, 6)
    with choice.interpreted(), observed() as launches:
        assert torch.equal(gated(x, "silu"), gated_reference(x, "silu"))
    assert not launches
    assert choice.switched_off() == {"gated": "It gave wrong numbers on this card."}


def test_float64_is_for_references_alone() -> None:
    with choice.interpreted(), observed() as launches:
        assert gated(torch.zeros(1, 4, dtype=torch.float64), "silu").dtype == torch.float64
    assert not launches


def test_written_down_nothing_runs() -> None:
    with written_down(Card.HOPPER) as launches:
        gated(torch.empty(1, 4, device="meta"), "silu")
    assert len(launches) == 1 and launches[0].grid == (1, 1)


WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None
import torch
from kernels.choice import takes_kernel
from kernels.decode_attention import decode_attention
from kernels.language import HAS_TRITON, INTERPRETED
from kernels.paged_kv import allocate
from kernels.sample import sample
import kernels.extend_attention, kernels.logits, kernels.norm, kernels.rotary, kernels.specs

assert not HAS_TRITON and not INTERPRETED
queries = torch.ones(1, 1, 8)
assert not takes_kernel("decode_attention", queries)
kv = allocate(1, 1, 8, torch.float32)
one, zero = torch.ones(1), torch.zeros(1, dtype=torch.int64)
decode_attention(queries, kv, torch.zeros(1, 1, dtype=torch.int32), one.int(), scale=1.0)
sample(
    torch.zeros(1, 9), temperatures=one, top_k=zero.int(), top_p=one, min_p=one, seeds=zero,
    positions=zero,
)
print("all ran")
"""


def test_without_triton_everything_imports_and_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TRITON], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "all ran\n", done.stderr
