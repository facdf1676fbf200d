"""What is compiled ahead is what a step asks for."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from kernels.card import Card
from kernels.choice import interpreted
from kernels.decode_attention import decode_attention
from kernels.extend_attention import extend_attention
from kernels.launch import Spec, observed
from kernels.norm import rms_norm
from kernels.rotary import rotate_and_store
from kernels.shapes import SHAPES
from kernels.specs import ModelShape, specs_for, warm_up
from tests.kernels.sequences import paged

TINY = ModelShape(
    name="tiny",
    num_heads=6,
    num_kv_heads=2,
    head_dim=16,
    hidden=96,
    feed_forward=64,
    vocab=70,
    dtype=torch.float16,
    kv_dtype=torch.int8,
    rotary_dims=(16,),
    windows=(0, 8),
    has_head_norms=True,
    batches=(1, 2),
    max_tokens=64,
)


def essentials(spec: Spec) -> tuple[Any, ...]:
    """All but which whole numbers happen to be multiples of 16."""
    return (spec.name, spec.types, spec.constants, spec.num_warps, spec.num_stages)


def test_what_a_layer_launches_is_on_the_list() -> None:
    sequences = paged((5, 20), 2, 16, torch.int8, seed=1)
    tables = sequences.tables[:, :2].repeat(1, 2)
    row = torch.randn(2, 10, 16).half()
    queries, keys, values = row.split((6, 2, 2), dim=1)
    ones = torch.ones(16).half()
    wholes = torch.zeros(2, dtype=torch.int64)
    starts = torch.tensor([0, 1, 2], dtype=torch.int32)
    with interpreted(), observed() as launches:
        x, weight = torch.randn(2, 96).half(), torch.ones(96).half()
        rms_norm(x, weight, 1e-5)
        rms_norm(x, weight, 1e-5, residual=x)
        rms_norm(queries, ones, 1e-5)
        rotate_and_store(
            queries, keys, values, wholes, wholes - 1, torch.zeros(64, 2, 8), sequences.kv
        )
        for window in (0, 8):
            decode_attention(
                queries, sequences.kv, tables, sequences.lengths, scale=0.25, window=window
            )
            extend_attention(
                queries, sequences.kv, tables, starts, sequences.lengths, scale=0.25, window=window
            )
    on_the_list = {essentials(spec) for spec in specs_for(TINY, Card.DESKTOP)}
    assert len(launches) >= 8
    assert {essentials(launch.spec) for launch in launches} <= on_the_list


def test_warming_up_builds_exactly_what_is_on_the_list() -> None:
    shape = replace(TINY, batches=(1,), vocab=20, weight_types=())
    with interpreted(), observed() as launches:
        shares = list(warm_up(shape, "cpu"))
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert {launch.spec for launch in launches} == set(specs_for(shape, Card.DESKTOP))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_has_each_build_once(shape: ModelShape) -> None:
    specs = specs_for(shape, Card.DESKTOP)
    assert len(set(specs)) == len(specs)
    names = {spec.name for spec in specs}
    assert {"decode_kernel", "extend_kernel", "sample_kernel", "rotate_kernel"} <= names


def test_an_option_of_a_model_changes_the_list() -> None:
    plain = {essentials(spec) for spec in specs_for(TINY, Card.DESKTOP)}
    for change in (
        {"softcap": 20.0},
        {"is_interleaved": True},
        {"kv_dtype": torch.float16},
        {"norm_adds_one": True},
        {"activation": "gelu"},
        {"final_softcap": 30.0},
    ):
        changed = specs_for(replace(TINY, **change), Card.DESKTOP)
        assert {essentials(spec) for spec in changed} - plain, change


def test_counts_that_change_from_step_to_step_need_no_build_of_their_own() -> None:
    short, long = (
        specs_for(replace(TINY, max_tokens=tokens, batches=(32,)), Card.DESKTOP)
        for tokens in (4096, 16384)
    )
    assert short == long
