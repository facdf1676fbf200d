"""A kernel that is wrong on a card is switched off, with a sentence."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kernels import choice
from kernels.choice import interpreted
from kernels.self_test import CHECKS, self_test
from kernels.specs import ModelShape

ROOT = Path(__file__).resolve().parent.parent.parent

TINY = ModelShape(
    name="tiny",
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    hidden=48,
    feed_forward=40,
    vocab=50,
    dtype=torch.float32,
    kv_dtype=torch.int8,
    rotary_dims=(8,),
    windows=(0, 7),
    weight_types=("Q8_0",),
    batches=(1,),
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    for operation in CHECKS:
        choice.switch_on(operation)


def test_where_all_is_well_nothing_is_switched_off() -> None:
    with interpreted():
        assert self_test(replace(TINY, dtype=torch.bfloat16), "cpu") == {}
    assert not choice.switched_off()


def test_wrong_numbers_and_failures_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(gate_up: torch.Tensor, kind: str) -> torch.Tensor:
        return torch.ones(gate_up.shape[0], gate_up.shape[1] // 2)

    def failing(*_: Any, **__: Any) -> torch.Tensor:
        raise RuntimeError("Failed to find C compiler.")

    monkeypatch.setattr("kernels.activation._gated", wrong)
    monkeypatch.setattr("kernels.norm._norm", failing)
    monkeypatch.setattr(
        "kernels.self_test.CHECKS", {name: CHECKS[name] for name in ("rms_norm", "gated")}
    )
    with interpreted():
        failed = self_test(TINY, "cpu")
    assert failed == {
        "gated": "The kernel of gated gave wrong numbers on this card, so a slower way is taken.",
        "rms_norm": "The kernel of rms_norm failed (Failed to find C compiler.) on this card,"
        " so a slower way is taken.",
    }
    assert choice.switched_off() == failed


def test_every_operation_that_can_be_switched_off_is_tested() -> None:
    """Or is only reached through `linear`."""
    named = set()
    for file in (ROOT / "kernels").rglob("*.py"):
        named |= set(re.findall(r'takes_kernel\(\s*"(\w+)"', file.read_text(encoding="utf-8")))
    assert set(CHECKS) <= named
    assert named - set(CHECKS) == {
        "dequantize",
        "exact_matvec",
        "matmul",
        "quantize_activations",
    }
