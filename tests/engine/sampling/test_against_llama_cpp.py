"""Every step that llama.cpp has, against its own C code on the same logits.

It computes in float32, so the rows have no ties, and a share never falls between two roundings.
"""

import ctypes
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.samplers import LlamaSampler
from engine.sampling import cutoffs, samplers
from engine.sampling.adaptive import AdaptiveP
from engine.sampling.bans import LogitBias
from engine.sampling.mirostat import Mirostat
from engine.sampling.penalties import Penalties
from engine.sampling.repeats import Dry
from engine.sampling.temperature import dynamic_temperature
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling.xtc import without_top_choices
from engine.sampling_params import SamplingParams
from tests.engine.sampling.rows import distinct_vectors, of

NOBODY = np.empty(0, np.intp)

FILTERS = {
    "top_k": (samplers.top_k, lambda k: ("top_k", k)),
    "top_p": (samplers.top_p, lambda p: ("top_p", p, 1)),
    "min_p": (samplers.min_p, lambda p: ("min_p", p, 1)),
    "typical": (cutoffs.typical_p, lambda p: ("typical", p, 1)),
    "top_n_sigma": (cutoffs.top_n_sigma, lambda n: ("top_n_sigma", n)),
    "xtc": (
        lambda candidates, t: without_top_choices(candidates, t, NOBODY),
        lambda t: ("xtc", 1.0, t, 1, 1),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_keeps_what_llama_cpp_keeps(name):
    ours, arguments = FILTERS[name]
    generator = np.random.default_rng(1)
    for logits in distinct_vectors(300):
        amount = float(np.float32(generator.uniform(0.01, 0.49 if name == "xtc" else 0.99)))
        if name == "top_k":
            amount = int(generator.integers(1, len(logits) + 5))
        theirs = LlamaSampler.of(*arguments(amount)).apply(logits)
        assert set(ours(of(logits), amount).tolist()) == set(theirs)


@pytest.mark.parametrize(
    ("logits", "k", "size"), [([1, 1, 1, 1, 0], 2, 2), ([3.0], 1, 1), ([1, 2], 9, 2)]
)
def test_of_equal_ones_top_k_keeps_as_many_as_llama_cpp(logits, k, size):
    logits = np.float32(logits)
    assert len(samplers.top_k(of(logits), k)) == len(LlamaSampler.of("top_k", k).apply(logits))
    assert len(samplers.top_k(of(logits), k)) == size


def test_top_p_zero_keeps_one_as_llama_cpp_does():
    logits = np.float32([0, 3, 1, 2])
    assert set(LlamaSampler.of("top_p", 0.0, 1).apply(logits)) == {1}
    assert samplers.top_p(of(logits), 0.0).tolist() == [1]


def test_the_dynamic_temperature_is_that_of_llama_cpp():
    generator = np.random.default_rng(2)
    for logits in distinct_vectors(100):
        middle, reach, exponent = (float(np.float32(x)) for x in generator.uniform(0.2, 2, 3))
        theirs = LlamaSampler.of("temp_ext", middle, reach, exponent).apply(logits)
        temperature = dynamic_temperature(of(logits), middle, reach, exponent)
        expected = [theirs[index] for index in range(len(logits))]
        assert (logits / temperature).tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_penalties_are_those_of_llama_cpp_over_an_answer():
    """Its window is for all of them; where the window has all of the answer there is no other
    difference."""
    params = SamplingParams(
        repetition_penalty=1.3, frequency_penalty=0.2, presence_penalty=0.5, penalty_window=64
    )
    generator = np.random.default_rng(3)
    ours, theirs = Penalties(params, 0, 0), LlamaSampler.of("penalties", 30, 64, 1.3, 0.2, 0.5)
    tokens = []
    for _ in range(60):
        logits = (generator.standard_normal(30) * 3).astype(np.float32)
        expected = theirs.apply(logits)
        row = logits.copy()
        ours.apply(row, tokens)
        assert row.tolist() == pytest.approx([expected[i] for i in range(30)], rel=1e-5, abs=1e-5)
        tokens.append(int(generator.integers(30)))
        theirs.accept(tokens[-1])


def test_a_logit_bias_is_that_of_llama_cpp():
    biases = (bindings.llama_logit_bias * 2)()
    biases[0].token, biases[0].bias = 1, -math.inf
    biases[1].token, biases[1].bias = 2, 3.0
    row = np.float32([1, 2, 3, 4])
    theirs = LlamaSampler.of("logit_bias", 4, 2, biases).apply(row)
    LogitBias([(1, -100.0), (2, 3.0)]).apply(row)
    assert {i: z for i, z in enumerate(row.tolist()) if z > -math.inf} == theirs


def test_mirostat_two_keeps_and_learns_as_llama_cpp_does():
    theirs, ours = LlamaSampler.of("mirostat_v2", 42, 3.0, 0.2), Mirostat(2, 3.0, 0.2, 400)
    for logits in distinct_vectors(80, seed=4):
        token, probabilities = theirs.choose(logits)
        kept = of(logits).keep(ours.keep(of(logits)))
        assert set(kept.token_ids.tolist()) == set(probabilities)
        ours.observe(float(kept.probabilities()[kept.token_ids.tolist().index(token)]))


def test_mirostat_one_keeps_and_learns_as_llama_cpp_does():
    num_tokens = 400
    theirs = LlamaSampler.of("mirostat", num_tokens, 42, 3.0, 0.2, 100)
    ours = Mirostat(1, 3.0, 0.2, num_tokens)
    for logits in distinct_vectors(80, seed=5, least=120):
        token, probabilities = theirs.choose(logits)
        kept = of(logits).keep(ours.keep(of(logits)))
        assert set(kept.token_ids.tolist()) == set(probabilities)
        ours.observe(float(kept.probabilities()[kept.token_ids.tolist().index(token)]))


def test_adaptive_p_draws_from_what_llama_cpp_draws_from_and_learns_alike():
    theirs, ours = LlamaSampler.of("adaptive_p", 0.3, 0.9, 42), AdaptiveP(0.3, 0.9)
    for logits in distinct_vectors(80, seed=6):
        token, probabilities = theirs.choose(logits)
        shaped = ours.shape(of(logits)).probabilities()
        expected = [probabilities.get(index, 0.0) for index in range(len(logits))]
        assert shaped == pytest.approx(expected, abs=1e-4)
        theirs.accept(token)
        ours.observe(float(of(logits).probabilities()[token]))


@pytest.fixture(scope="module")
def model(starter: Path):
    """DRY asks a vocabulary for its breakers."""
    loaded = LlamaModel(starter, facts_only=True)
    yield loaded
    loaded.close()


@pytest.mark.model
@pytest.mark.parametrize("breakers", [(), ("\n", ":", '"', "*"), ("e",)], ids=repr)
def test_dry_penalises_what_llama_cpp_penalises(model, breakers):
    vocab = bindings.llama_model_get_vocab(model.pointer)
    vocabulary = SamplingVocabulary(model.vocabulary)
    names = (ctypes.c_char_p * max(1, len(breakers)))(*(each.encode() for each in breakers))
    words = [
        token
        for text in (" the", " cat", ":", " sat", "\n", " on", "e")
        for token in model.vocabulary.encode(text)
    ]
    generator = np.random.default_rng(7)
    num_penalised = Counter()
    for _ in range(6):
        allowed, window = int(generator.integers(1, 4)), int(generator.integers(2, 64))
        params = SamplingParams(
            dry_multiplier=0.8, dry_allowed_length=allowed, dry_window=window, dry_breakers=breakers
        )
        theirs = LlamaSampler.of("dry", vocab, 0.8, 1.75, allowed, window, names, len(breakers))
        ours = Dry(params, vocabulary)
        tokens = []
        for token in generator.choice(words, 60).tolist():
            tokens.append(token)
            theirs.accept(token)
            history = np.array(tokens, np.int32)
            ours.follow(history, is_in_form=False)
            if len(tokens) <= allowed or generator.random() < 0.7:
                continue
            ids, amounts = ours.penalties(history, is_in_form=False)
            # Rows of the ids that may be meant are enough: it goes by their ids.
            left = theirs.apply(np.zeros(max(words) + 1, np.float32))
            expected = {each: -z for each, z in left.items() if z != 0}
            assert dict(zip(ids.tolist(), amounts.tolist(), strict=True)) == pytest.approx(
                expected, rel=1e-4
            )
            num_penalised[bool(expected)] += 1
    assert num_penalised[True] > 5
