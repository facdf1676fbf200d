"""The penalties: the formulae, and counts that follow a window without recounting it."""

from collections import Counter

import numpy as np
import pytest

from engine.sampling.penalties import Penalties, TokenCounts
from engine.sampling_params import SamplingParams


def penalised_slowly(logits, tokens, num_prompt, params):
    """The definition, over the whole history."""
    result = [float(z) for z in logits]
    window = tokens[max(0, len(tokens) - params.penalty_window) :]
    for token in set(window):
        factor = params.repetition_penalty
        result[token] = result[token] / factor if result[token] > 0 else result[token] * factor
    for token, count in Counter(tokens[num_prompt:]).items():
        result[token] -= params.frequency_penalty * count + params.presence_penalty
    return result


def penalised(penalties, logits, tokens):
    row = np.float32(logits)
    penalties.apply(row, tokens)
    return row


def test_repetition_comes_first_then_frequency_and_presence():
    params = SamplingParams(
        repetition_penalty=1.3, frequency_penalty=0.2, presence_penalty=0.5, penalty_window=64
    )
    row = penalised(Penalties(params, 0, 4), [2, -1, 0.5, 0, 1], [0, 0, 1, 3])
    assert row == pytest.approx([2 / 1.3 - 0.9, -2.0, 0.5, -0.7, 1.0], abs=1e-6)


def test_the_prompt_counts_for_repetition_only():
    logits = [2, 2]
    repetition = Penalties(SamplingParams(repetition_penalty=2.0), 1, 1)
    assert penalised(repetition, logits, [0]).tolist() == [1, 2]
    others = SamplingParams(frequency_penalty=1.0, presence_penalty=1.0)
    assert penalised(Penalties(others, 1, 1), logits, [0]).tolist() == [2, 2]


def test_a_window_of_zero_sees_nothing():
    params = SamplingParams(repetition_penalty=2.0, penalty_window=0)
    assert penalised(Penalties(params, 1, 2), [2, 2], [0, 1]).tolist() == [2, 2]


@pytest.mark.parametrize("seed", range(20))
def test_following_the_tokens_gives_what_recounting_gives(seed):
    generator = np.random.default_rng(seed)
    num_tokens = int(generator.integers(2, 200))
    params = SamplingParams(
        repetition_penalty=float(generator.uniform(0.5, 2)),
        frequency_penalty=float(generator.uniform(-1, 1)),
        presence_penalty=float(generator.uniform(-1, 1)),
        penalty_window=int(generator.integers(0, 60)),
    )
    tokens = generator.integers(0, num_tokens, int(generator.integers(1, 150))).tolist()
    num_prompt = len(tokens)
    penalties = Penalties(params, num_prompt, len(tokens))
    for _ in range(60):
        logits = (generator.standard_normal(num_tokens) * 3).astype(np.float32)
        expected = penalised_slowly(logits, tokens, num_prompt, params)
        assert penalised(penalties, logits, tokens) == pytest.approx(expected, abs=1e-4)
        tokens.extend(generator.integers(0, num_tokens, int(generator.integers(1, 4))).tolist())


@pytest.mark.parametrize("seed", range(10))
def test_counts_hold_each_token_of_the_span_once(seed):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(0, 150, 20).tolist()
    start = int(generator.integers(0, 20))
    counts = TokenCounts(start)
    for _ in range(100):
        tokens.extend(generator.integers(0, 150, int(generator.integers(0, 8))).tolist())
        start = int(generator.integers(start, len(tokens) + 1))
        counts.move(tokens, start)
        pairs = list(zip(counts.ids.tolist(), counts.counts.tolist(), strict=True))
        assert sorted(pairs) == sorted(Counter(tokens[start:]).items())
