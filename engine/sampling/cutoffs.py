"""The other filters: those that ask how much probability a token has, or how surprising it is.

As in `samplers`, a filter gives the ascending indices that it keeps, at least one, and of equal
candidates the lower index stays.
"""

import numpy as np

from engine.sampling.candidates import Candidates, Indices, entropy
from engine.sampling.mass import nearest_with_mass
from engine.sampling.samplers import min_p, top_k


def typical_p(candidates: Candidates, p: float) -> Indices:
    """Those whose surprise is nearest to the entropy, as many as it takes to exceed the sum `p`
    (below 1); at least one."""
    exponents = candidates.exponents()
    weights = np.exp(exponents)
    total = float(weights.sum())
    # What has no chance is infinitely far, and comes last.
    surprise_above_total = -exponents
    distances = np.abs(surprise_above_total - (entropy(exponents) - np.log(total)))
    return nearest_with_mass(distances, weights, p * total, must_exceed=True)


def tail_free(candidates: Candidates, z: float) -> Indices:
    """Those before the place where the curve of probabilities, the largest first, has spent the
    share `z` (below 1) of its second derivative. The least likely one always goes.

    All stay when there are fewer than three, or when the curve is a straight line.
    """
    everyone = np.arange(len(candidates))
    probabilities = candidates.probabilities()
    probabilities.sort()
    bends = np.abs(np.diff(probabilities[::-1], 2))
    total = float(bends.sum()) if len(bends) else 0.0
    if total == 0.0:
        return everyone
    num_before = int(np.searchsorted(np.cumsum(bends / total), z, side="right"))
    return top_k(candidates, 1 + num_before)


def top_a(candidates: Candidates, share: float) -> Indices:
    """Those with at least `share` (above 0) times the square of the largest probability."""
    return min_p(candidates, share / float(candidates.weights().sum()))


def epsilon_cutoff(candidates: Candidates, epsilon: float) -> Indices:
    """Those with a probability of at least `epsilon` (above 0), and the likeliest ones."""
    return _above(candidates, epsilon, float(candidates.weights().sum()))


def eta_cutoff(candidates: Candidates, epsilon: float) -> Indices:
    """The same with a bound that falls with the entropy, from `epsilon` (above 0) on."""
    exponents = candidates.exponents()
    eta = min(epsilon, np.sqrt(epsilon) * np.exp(-entropy(exponents)))
    return _above(candidates, float(eta), float(np.exp(exponents).sum()))


def top_n_sigma(candidates: Candidates, n: float) -> Indices:
    """Those at most `n` standard deviations of the logits below the largest.

    A temperature stretches both alike, so that it does not matter.
    """
    logits = candidates.logits.astype(np.float64)
    possible = logits if np.isfinite(logits).all() else logits[np.isfinite(logits)]
    return np.flatnonzero(logits >= candidates.highest - n * float(possible.std()))


def _above(candidates: Candidates, probability: float, total: float) -> Indices:
    """`total`: of the weights, where the likeliest one has 1."""
    return min_p(candidates, min(1.0, probability * total))
