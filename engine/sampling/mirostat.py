"""Mirostat: keep the surprise of a text near a target, in bits a token (arXiv 2007.14966)."""

import math

import numpy as np

from engine.sampling.candidates import Candidates, Indices
from engine.sampling.samplers import top_k

# From so many of the likeliest the first version estimates how fast probabilities fall.
NUM_FOR_ESTIMATE = 100


class Mirostat:
    """How much surprise is allowed now. Owned by the state of one request.

    A token that was no choice, since a form allowed no other, teaches it nothing.
    """

    def __init__(self, version: int, tau: float, eta: float, num_tokens: int) -> None:
        """`num_tokens`: of the vocabulary."""
        self._version = version
        self._tau = tau
        self._eta = eta
        self._num_tokens = num_tokens
        self.mu = 2 * tau

    def copy(self) -> "Mirostat":
        other = Mirostat(self._version, self._tau, self._eta, self._num_tokens)
        other.mu = self.mu
        return other

    def keep(self, candidates: Candidates) -> Indices:
        """The ascending indices of those that are not too surprising; at least one."""
        if self._version == 1:
            return top_k(candidates, self._num_kept(candidates))
        exponents = candidates.exponents()
        surprises = (math.log(float(np.exp(exponents).sum())) - exponents) / math.log(2)
        kept = np.flatnonzero(surprises <= self.mu)
        return kept if len(kept) else top_k(candidates, 1)

    def observe(self, probability: float) -> None:
        """Correct the allowance by what was drawn: `probability` is among those that were kept."""
        self.mu -= self._eta * (-math.log2(probability) - self._tau)

    def _num_kept(self, candidates: Candidates) -> int:
        """The k whose surprise is expected to be `mu`, if probabilities fall like 1 / rank^s."""
        slope = _slope(candidates)
        if slope == 0.0:
            # All alike: the formula's limit is nothing or everything.
            return len(candidates) if 2**self.mu > self._num_tokens - 1 else 1
        epsilon, log_size = slope - 1, math.log(self._num_tokens)
        share = log_size if epsilon == 0.0 else -math.expm1(-epsilon * log_size) / epsilon
        # In logarithms, since the powers may overflow.
        log_k = (self.mu * math.log(2) - math.log(share)) / slope
        if log_k >= math.log(len(candidates)):
            return len(candidates)
        return max(1, int(math.exp(log_k)))


def _slope(candidates: Candidates) -> float:
    """The estimate of Zipf's exponent over the likeliest candidates; 0 when they are all equal."""
    best = candidates.keep(top_k(candidates, NUM_FOR_ESTIMATE))
    exponents = np.sort(best.exponents())[::-1]
    exponents = exponents[np.isfinite(exponents)]
    if len(exponents) < 2:
        return 0.0
    ranks = np.arange(1, len(exponents), dtype=np.float64)
    falls = np.log((ranks + 1) / ranks)
    return float((falls * -np.diff(exponents)).sum() / (falls * falls).sum())
