"""Filling a tile: only where it pays, and nobody's answer, cells or bits are touched by it."""

import random

import numpy as np
import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.step_batch import Part
from engine.backends.llama_cpp.tile_filler import TILE_TOKENS, TileFiller
from tests.engine.backends.llama_cpp.model_run import small_context

SMOLLM2 = TileFiller(30, 9, 134_515_008)
LLAMA_3B = TileFiller(28, 24, 3_210_000_000)


def part(start: int, count: int, sequence_id: int = 0) -> Part:
    return Part(sequence_id, start, [1] * count, False)


@pytest.mark.parametrize(
    ("filler", "start", "count", "fills"),
    [
        (SMOLLM2, 0, 31, False),
        (SMOLLM2, 7000, 31, True),
        (SMOLLM2, 7000, 4, False),
        (SMOLLM2, 2000, 31, True),
        (SMOLLM2, 2000, 8, False),
        (LLAMA_3B, 2000, 31, False),
        (LLAMA_3B, 7000, 31, True),
    ],
)
def test_a_piece_is_filled_where_reading_it_alone_takes_longer(
    filler: TileFiller, start: int, count: int, fills: bool
) -> None:
    expected = TILE_TOKENS - count if fills else 0
    assert filler.num_tokens([part(start, count)], count) == expected


def test_a_token_alone_and_a_whole_tile_are_left_as_they_are() -> None:
    for count in (1, 64, 65, 200):
        assert SMOLLM2.num_tokens([part(8000, count)], count) == 0


def test_many_talkers_with_long_conversations_are_not_worth_a_tile() -> None:
    parts = [part(7000, 1, number) for number in range(8)]
    assert SMOLLM2.num_tokens(parts, 8) == 0


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(100, 40_000), k=count)


class AlwaysFills(TileFiller):
    def num_tokens(self, parts: object, num_tokens: int) -> int:
        return TILE_TOKENS - num_tokens if 1 < num_tokens < TILE_TOKENS else 0


def logits_of(context: LlamaContext, part: Part) -> np.ndarray:
    assert context.decode([part]) is None
    return context.logits(1)[0].copy()


def divergence(one: np.ndarray, other: np.ndarray) -> float:
    """Kullback-Leibler, in nats."""

    def logarithms(logits: np.ndarray) -> np.ndarray:
        shifted = logits.astype(np.float64) - logits.max()
        return shifted - np.log(np.exp(shifted).sum())

    p, q = logarithms(one), logarithms(other)
    return float((np.exp(p) * (p - q)).sum())


def test_a_filled_piece_gives_the_logits_of_an_unfilled_one_and_leaves_no_trace(
    backend: LlamaBackend,
) -> None:
    # Of random words the rounding alone moves logits further.
    story = "Once upon a time a small ship left the harbour to look for a quiet island. " * 20
    token_ids = backend.tokenizer.encode(story)
    prompt, more = token_ids[:300], token_ids[300:320]
    found = []
    for filler in (None, AlwaysFills(1, 1, 1)):
        with small_context(backend._model, num_cells=512, max_batch_tokens=320) as context:
            context._filler = filler
            logits_of(context, Part(0, 0, prompt, True))
            found.append(logits_of(context, Part(0, 300, more, True)))
            assert context.length(0) == 320
            assert context._end(context._scratch) == 0
            # All other cells are free again.
            assert context.decode([Part(1, 0, words(3, 192), False)]) is None
    # Two ways to add up the same numbers; a token from elsewhere would change far more.
    assert divergence(*found) < 0.02
    assert found[0].argmax() == found[1].argmax()


def test_without_free_cells_for_the_filling_the_piece_is_computed_without_it(
    backend: LlamaBackend,
) -> None:
    with small_context(backend._model, num_cells=512, max_batch_tokens=512) as context:
        context._filler = AlwaysFills(1, 1, 1)
        assert context.decode([Part(0, 0, words(1, 480), False)]) is None
        logits = logits_of(context, Part(0, 480, words(2, 20), True))
        assert np.isfinite(logits).all()
        assert context.length(0) == 500


def test_two_filled_pieces_of_the_same_tokens_have_the_same_bits(backend: LlamaBackend) -> None:
    found = []
    for _ in range(2):
        with small_context(backend._model, num_cells=512, max_batch_tokens=320) as context:
            context._filler = AlwaysFills(1, 1, 1)
            logits_of(context, Part(0, 0, words(1, 256), True))
            found.append(logits_of(context, Part(0, 256, words(2, 20), True)))
    assert np.array_equal(*found)
