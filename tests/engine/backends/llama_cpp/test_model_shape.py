"""What the memory of a context follows from."""

from pathlib import Path
from typing import Any

import pytest

from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.model_shape import MAX_TWINS, ContextShape
from engine.batch import MAX_GUESSED
from engine.config import DEFAULT_CONTEXT_TOKENS, EngineConfig
from engine.errors import InvalidParams


def shape(**changes: Any) -> ContextShape:
    facts: dict[str, Any] = {
        "width": 100,
        "widest_layer": 300,
        "num_words": 1000,
        "window_tokens": 0,
        "kv": KVShape(640, frozenset([64]), True),
    }
    return ContextShape(**facts | changes)


def config(**choices: Any) -> EngineConfig:
    return EngineConfig(model_path=Path("m.gguf"), **choices)


def test_kv_logits_and_buffers_are_counted_each_for_itself() -> None:
    sizes = {"num_cells": 512, "num_ids": 33, "max_batch_tokens": 64}
    whole = shape().num_bytes(kv_type="f16", **sizes)
    assert whole == (
        512 * 640 * 2 + 4 * (33 + 1 + MAX_GUESSED) * 1000 + 64 * (4 * (2 * 300 + 6 * 100) + 2 * 512)
    )
    coarser = shape().num_bytes(kv_type="q8_0", **sizes)
    assert whole - coarser == 512 * 640 * 2 * (1 - 34 / 64)


def test_a_sliding_window_takes_a_twin_of_each_sequence() -> None:
    assert shape().num_ids(32) == 33
    assert shape(window_tokens=512).num_ids(32) == 65
    assert shape(window_tokens=512).num_ids(255) == 2 * MAX_TWINS + 1
    assert shape(kv=KVShape(640, frozenset([64]), False)).num_ids(32) == 32


@pytest.mark.parametrize(
    ("chosen", "trained", "cells"),
    [(None, 4096, 4096), (None, 131072, DEFAULT_CONTEXT_TOKENS), (16384, 4096, 16384)],
)
def test_a_context_is_what_was_chosen_or_what_suits_the_model(
    chosen: int | None, trained: int, cells: int
) -> None:
    assert config(context_tokens=chosen).num_cells(trained) == cells


def test_a_kv_type_that_is_impossible_is_refused_before_anything_is_counted() -> None:
    odd = shape(kv=KVShape(640, frozenset([80]), True))
    with pytest.raises(InvalidParams, match="choose f16 or auto"):
        odd.bytes_for(config(kv_type="q8_0"), 4096)
