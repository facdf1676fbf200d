"""Filling a tile: only where it pays, and nobody's answer, cells or bits are touched by it."""

import random

import numpy as np
import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.step_batch import Part
from engine.backends.llama_cpp.tile_filler import TILE_TOKENS, TileFiller
from tests.engine.backends.llama_cpp.model_run import small_context

SMOLLM2 = 30, 576, 134_515_008


def part(start: int, count: int, sequence_id: int = 0) -> Part:
    return Part(sequence_id, start, [1] * count, 0)


class Machine:
    """What steps take on one, in seconds: a token, a look by itself and one in a tile."""

    def __init__(self, token: float, look_alone: float, look_in_tile: float) -> None:
        self.token = token
        self.look_alone = look_alone
        self.look_in_tile = look_in_tile
        self.filler = TileFiller(*SMOLLM2)

    def seconds(self, start: int, count: int, num_filling: int = 0) -> float:
        if count + num_filling >= TILE_TOKENS:
            looks = (count + num_filling) * (start + count) * self.look_in_tile
            return (count + num_filling) * self.token + looks
        return count * self.token + count * (start + count / 2) * self.look_alone

    def read(self, start: int, count: int) -> int:
        """Gives how many tokens were added."""
        parts = [part(start, count)]
        num_filling = self.filler.num_tokens(parts, count)
        seconds = self.seconds(start, count, num_filling)
        self.filler.learn(parts, count + num_filling, seconds)
        return num_filling


# As two machines were measured, with SmolLM2 on 2 threads.
def slow_alone() -> Machine:
    return Machine(3.5e-3, 13e-6, 1.5e-6)


def fast_alone() -> Machine:
    return Machine(3.5e-3, 2.6e-6, 1.3e-6)


@pytest.mark.parametrize(
    ("machine", "start", "count", "fills"),
    [
        (slow_alone(), 0, 31, False),
        (slow_alone(), 7000, 31, True),
        (slow_alone(), 7000, 4, False),
        (fast_alone(), 7000, 31, False),
        (fast_alone(), 2300, 18, False),
        (fast_alone(), 7000, 63, True),
    ],
)
def test_a_piece_is_filled_where_that_was_seen_to_be_faster(
    machine: Machine, start: int, count: int, fills: bool
) -> None:
    machine.read(0, 512)
    for _ in range(6):
        machine.read(2000, 512)
        machine.read(3000, 50)
    assert machine.read(start, count) == (TILE_TOKENS - count if fills else 0)


@pytest.mark.parametrize("machine", [slow_alone(), fast_alone()])
@pytest.mark.parametrize("count", [5, 18, 31, 50, 63])
def test_turns_of_any_length_soon_take_no_longer_than_they_must(
    machine: Machine, count: int
) -> None:
    machine.read(0, 512)
    for start in range(1000, 7000, 600):
        machine.read(start, count)
    num_filling = machine.read(7000, count)
    best = min(machine.seconds(7000, count, each) for each in (0, TILE_TOKENS - count))
    assert machine.seconds(7000, count, num_filling) <= 1.4 * best


def test_nothing_is_filled_before_anything_was_seen() -> None:
    assert TileFiller(*SMOLLM2).num_tokens([part(7000, 50)], 50) == 0


def test_a_token_alone_and_a_whole_tile_are_left_as_they_are() -> None:
    machine = slow_alone()
    machine.read(0, 512)
    machine.read(6000, 50)
    for count in (1, 64, 65, 200):
        assert machine.read(8000, count) == 0


@pytest.mark.parametrize("count", range(1, 70))
def test_where_the_bits_must_be_the_same_nothing_that_was_learned_counts(count: int) -> None:
    machine = slow_alone()
    parts = [part(5000, count)]
    before = machine.filler.num_tokens(parts, count, is_fixed=True)
    machine.read(0, 512)
    machine.read(6000, 50)
    assert machine.filler.num_tokens(parts, count, is_fixed=True) == before
    assert before in (0, TILE_TOKENS - count)


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(100, 40_000), k=count)


class AlwaysFills(TileFiller):
    def num_tokens(self, parts: object, num_tokens: int, *, is_fixed: bool = False) -> int:
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
    for filler in (None, AlwaysFills(*SMOLLM2)):
        with small_context(backend._model, num_cells=512, max_batch_tokens=320) as context:
            context._filler = filler
            logits_of(context, Part(0, 0, prompt, 1))
            found.append(logits_of(context, Part(0, 300, more, 1)))
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
        context._filler = AlwaysFills(*SMOLLM2)
        assert context.decode([Part(0, 0, words(1, 480), False)]) is None
        logits = logits_of(context, Part(0, 480, words(2, 20), True))
        assert np.isfinite(logits).all()
        assert context.length(0) == 500


def test_two_filled_pieces_of_the_same_tokens_have_the_same_bits(backend: LlamaBackend) -> None:
    found = []
    for _ in range(2):
        with small_context(backend._model, num_cells=512, max_batch_tokens=320) as context:
            context._filler = AlwaysFills(*SMOLLM2)
            logits_of(context, Part(0, 0, words(1, 256), True))
            found.append(logits_of(context, Part(0, 256, words(2, 20), True)))
    assert np.array_equal(*found)
