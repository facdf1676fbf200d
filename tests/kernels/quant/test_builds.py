"""What packed weights need is compiled ahead, and costs no more than a card can bear."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels.card import Card
from kernels.choice import interpreted
from kernels.compile_matrix import Build
from kernels.launch import observed
from kernels.quant.embedding import embedding
from kernels.quant.linear import MATMUL_TOKENS, linear
from kernels.shapes import SMOLLM2
from kernels.specs import ModelShape, specs_for
from tests.kernels.quant.packed import TYPES, packed, vectors

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PLAIN = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}

TINY = ModelShape(
    name="tiny",
    num_heads=4,
    num_kv_heads=2,
    head_dim=64,
    hidden=256,
    feed_forward=512,
    vocab=32,
    rotary_dims=(64,),
    weight_types=TYPES,
    batches=(1, 2, 4, 8, 16),
    max_tokens=64,
)


@pytest.mark.parametrize("type_name", TYPES)
def test_what_a_layer_launches_is_on_the_list(type_name: str) -> None:
    weight = packed(type_name, 32, 256).matrix
    with interpreted(), observed() as launches:
        for num_tokens in (1, 2, 3, 8, 9, 17, 65, MATMUL_TOKENS + 1):
            linear(vectors(num_tokens, 256, torch.bfloat16), weight)
        linear(vectors(3, 256, torch.bfloat16), weight, is_exact=True)
        embedding(torch.tensor([3]), weight, torch.bfloat16)
    assert len({launch.spec.name for launch in launches}) == 5
    assert {launch.spec for launch in launches} <= set(specs_for(TINY, Card.DESKTOP))


def test_a_type_whose_blocks_do_not_fit_the_width_needs_nothing() -> None:
    assert SMOLLM2.hidden % 256
    types = {
        dict(spec.constants).get("FORMAT")
        for spec in specs_for(SMOLLM2, Card.DESKTOP)
        if spec.name == "matvec_kernel"
    }
    assert types == set(SMOLLM2.weight_types)


@pytest.mark.skipif(sys.platform != "linux", reason="Triton's assembler is for Linux")
def test_a_weight_costs_less_than_a_card_can_issue_meanwhile() -> None:
    """On the tightest of the cards."""
    command = ["--shape", "smollm2-135m", "--kernel", "matvec_kernel", "--targets", "90"]
    done = subprocess.run(
        [sys.executable, "-m", "kernels.compile_matrix", *command],
        cwd=ROOT,
        env=PLAIN,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *lines, last = done.stdout.splitlines()
    assert json.loads(last)["builds"] == len(lines) == 4 * len(SMOLLM2.weight_types)
    bounded = [line for line in lines if "instructions per weight" in line and " of " in line]
    assert len(bounded) == len(SMOLLM2.weight_types)


def test_a_build_that_issues_too_much_is_bad() -> None:
    def build(issued: float, allowed: float | None) -> Build:
        return Build("matvec_kernel", 90, 40, 0, 16, False, 1.0, issued, allowed)

    assert build(4.3, 4.4).is_good and not build(4.5, 4.4).is_good
    assert build(9.0, None).is_good
