"""The filters of every day, top-k, top-p and min-p, and the draw itself.

Every filter takes candidates and gives the ascending indices that it keeps; the largest logit is
among them. Equal logits keep the lower index. No filter sorts all of a long row when a threshold
can spare it, and no shortcut changes a result.
"""

import math

import numpy as np

from engine.sampling.candidates import Candidates, Indices, Logits
from engine.sampling.mass import index_of_mass

# A row is folded this often for a threshold: 64 was quickest at 262k tokens, 32 to 128 at 49k.
NUM_FOLDS = 64

# From this length on, top-p looks for its end near the maximum before it sorts everything.
LONG = 4096
# How far from the maximum, in nats. Where more than a part of the row is near, it is not worth it.
DEPTHS = (4.0, 10.0)
NEAR_PART = 8

# How far float32 may put the mass of a row from its float64 value, with a wide margin, as long as
# the temperature itself is no tiny number.
MASS_ERROR = 1e-5
LEAST_TEMPERATURE = 1e-6


def top_k(candidates: Candidates, k: int) -> Indices:
    """The `k` largest; all of them when there are fewer."""
    logits = candidates.logits
    if k >= len(logits):
        return np.arange(len(logits))
    width = len(logits) // NUM_FOLDS
    if 2 * k > width:
        return _largest(logits, np.partition(logits, len(logits) - k)[len(logits) - k], k)
    # Each of these maxima is another logit, so k logits are at least as large as the k-th of them.
    maxima = logits[: NUM_FOLDS * width].reshape(NUM_FOLDS, width).max(axis=0)
    floor = np.partition(maxima, width - k)[width - k]
    near = np.flatnonzero(logits >= floor)
    values = logits[near]
    return near[_largest(values, np.partition(values, len(near) - k)[len(near) - k], k)]


def top_p(candidates: Candidates, p: float) -> Indices:
    """The fewest largest logits that hold the share `p` of the probability; at least one."""
    logits = candidates.logits
    if len(logits) >= LONG:
        near = _last_near(candidates, p)
        if near is not None:
            return _largest(logits, *near)
    # Descending, and not seen from the end of ascending ones, which is slow to compute with.
    values = np.sort(np.negative(logits))
    np.negative(values, out=values)
    weights = Candidates(values, None, candidates.highest, candidates.temperature).weights()
    last = min(index_of_mass(weights, p, must_exceed=False), len(values) - 1)
    return _largest(logits, values[last], last + 1)


def min_p(candidates: Candidates, share: float) -> Indices:
    """Those with at least `share` (above 0) of the probability of the most likely one."""
    exact = candidates.highest + math.log(share) * candidates.temperature
    floor = np.float32(exact)
    if float(floor) < exact:
        floor = np.nextafter(floor, np.float32(math.inf))
    return np.flatnonzero(candidates.logits >= floor)


def draw(candidates: Candidates, generator: np.random.Generator) -> int:
    """An index, drawn with the probabilities that the temperature gives."""
    # At most 1 - 2^-53 is drawn, and that share of a float64 never rounds up to the whole: there is
    # a sum above it, and it belongs to a token with a probability.
    return index_of_mass(candidates.weights(), generator.random())


def _last_near(candidates: Candidates, p: float) -> tuple[np.float32, int] | None:
    """The smallest logit that top-p keeps and how many it keeps, from the logits near the maximum.
    None: they are not enough, or float32 cannot tell."""
    logits, highest, bound = candidates.logits, candidates.highest, candidates.bound
    if bound < LEAST_TEMPERATURE:
        return None
    with np.errstate(over="ignore"):
        shifted = logits - np.float32(highest)
        if bound != 1.0:
            shifted /= np.float32(bound)
    total = float(np.exp(shifted, out=shifted).sum(dtype=np.float64))
    least, most = (p - MASS_ERROR) * total, (p + MASS_ERROR) * total
    for depth in DEPTHS:
        is_near = logits >= np.float32(highest - depth * bound)
        if NEAR_PART * np.count_nonzero(is_near) > len(logits):
            return None
        values = np.sort(logits[is_near])[::-1]
        weights = np.exp((values.astype(np.float64) - highest) / bound)
        first, last = np.searchsorted(np.cumsum(weights), (least, most))
        # Only when the error cannot move the end, and the end lies among these.
        if first == last < len(values):
            return values[first], int(first) + 1
    return None


def _largest(logits: Logits, smallest: np.float32, count: int) -> Indices:
    """The indices of the `count` largest, when the last of them is `smallest`."""
    kept = np.flatnonzero(logits >= smallest)
    surplus = len(kept) - count
    if surplus > 0:
        equal = np.flatnonzero(logits[kept] == smallest)
        kept = np.delete(kept, equal[-surplus:])
    return kept
