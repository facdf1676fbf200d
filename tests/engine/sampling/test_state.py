"""What is remembered of a request can be copied, and gone back to."""

import numpy as np
import pytest

from engine.sampling.chain import Place, stages
from engine.sampling.samplers import draw
from tests.engine.sampling.rows import Letters, state_of

EVERYTHING = {
    "repetition_penalty": 1.2,
    "frequency_penalty": 0.1,
    "penalty_window": 6,
    "no_repeat_ngram_size": 4,
    "dry_multiplier": 0.5,
    "banned_phrases": ("ab", "ca"),
    "logit_bias": ((3, 0.5),),
    "xtc_probability": 0.5,
    "xtc_threshold": 0.1,
    "temperature": 1.4,
    "seed": 3,
}
TEXTS = "abcdefgh"


def generate(state, tokens, num_steps, seed):
    """Tokens that are drawn one after the other from random rows."""
    generator = np.random.default_rng(seed)
    for _ in range(num_steps):
        row = (generator.standard_normal(len(TEXTS)) * 2).astype(np.float32)
        *_, last = stages(row, state, Place(tokens, len(tokens) - 2))
        index = draw(last.candidates, state.generator)
        probability = float(last.candidates.probabilities()[index])
        if state.mirostat is not None:
            state.mirostat.observe(probability)
        if state.adaptive is not None:
            state.adaptive.observe(probability)
        tokens.append(last.candidates.token(index))
    return tokens[-num_steps:]


@pytest.mark.parametrize("more", [{}, {"mirostat": 2}, {"adaptive_target": 0.3}], ids=str)
def test_going_back_to_a_copy_gives_what_would_have_come(more):
    state = state_of(Letters(texts=TEXTS), 2, 2, **EVERYTHING, **more)
    tokens = [0, 1]
    generate(state, tokens, 20, seed=1)
    kept, length = state.copy(), len(tokens)
    straight_on = generate(state, tokens, 15, seed=2)
    for _ in range(2):
        del tokens[length:]
        # Another way first, on a copy of the copy.
        generate(kept.copy(), tokens, 9, seed=99)
        del tokens[length:]
        assert generate(kept.copy(), tokens, 15, seed=2) == straight_on


def test_only_what_is_asked_for_is_kept():
    state = state_of(Letters(texts=TEXTS))
    parts = (state.bias, state.phrases, state.penalties, state.dry, state.history)
    assert parts == (None,) * 5 and state.mirostat is None and state.adaptive is None
    assert not state.has_bans and not state.has_penalties


def test_what_is_banned_after_some_tokens():
    state = state_of(Letters(texts=TEXTS), 1, 1, logit_bias=((5, -100),), banned_phrases=("ab",))
    assert state.forbids(5, [7])
    assert not state.forbids(1, [7])
    assert state.forbids(1, [7, 0])
    assert not state_of(Letters(texts=TEXTS)).forbids(5, [])
