"""Rows of logits and vocabularies for the tests of sampling."""

import numpy as np

from engine.sampling.candidates import Candidates
from engine.sampling.state import SamplerState
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams


class Letters:
    """A vocabulary of so many tokens, the first of them bytes, or of given texts."""

    bos_id = None
    control_tokens = {}

    def __init__(self, num_tokens=256, texts=(), ends=()):
        self.texts = [text.encode() for text in texts] or [bytes([i]) for i in range(256)]
        self.num_tokens = len(texts) or num_tokens
        self.ends = ends

    def encode(self, text):
        return list(text.encode())

    def token_bytes(self, token_id):
        return self.texts[token_id] if token_id < len(self.texts) else b""

    def is_end(self, token_id):
        return token_id in self.ends


def vectors(count=300, seed=11):
    """Vectors of many lengths and shapes: with ties, with -inf, all equal, of one token."""
    generator = np.random.default_rng(seed)
    for number in range(count):
        size = int(generator.integers(1, 700))
        logits = generator.standard_normal(size) * generator.uniform(0.3, 4)
        match number % 5:
            case 1:
                logits = np.round(logits)
            case 2:
                logits[generator.random(size) < 0.5] = -np.inf
                logits[generator.integers(size)] = 0.5
            case 3:
                logits[:] = 1.5
            case 4:
                logits = logits[:1]
        yield logits.astype(np.float32)


def distinct_vectors(count=200, seed=12, least=2):
    """The same without ties and without -inf, for a reference that has an order of its own."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        size = int(generator.integers(least, 500))
        logits = generator.standard_normal(size) * generator.uniform(0.3, 4)
        yield np.unique(logits.astype(np.float32))[generator.permutation(size)]


def long_vector(seed, spread=2.0, size=9000):
    return (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)


def of(logits, temperature=1.0):
    return Candidates.of(np.asarray(logits, np.float32), temperature)


def state_of(tokenizer=None, num_prompt_tokens=0, num_tokens=0, **params):
    vocabulary = SamplingVocabulary(tokenizer or Letters())
    return SamplerState(SamplingParams(**params), vocabulary, num_prompt_tokens, num_tokens)
