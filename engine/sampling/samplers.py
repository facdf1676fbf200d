"""The filters of every day, top-k, top-p and min-p, and the draw itself.

Every filter takes candidates and gives the ascending indices that it keeps; the largest logit is
among them. Equal logits keep the lower index. No filter sorts all of a long row when a threshold
can spare it, and no shortcut changes a result.
"""

import math

import numpy as np

from engine.sampling.candidates import Candidates, Indices, Logits, Weights
from engine.sampling.mass import index_of_mass

# A row is folded this often for a threshold: 64 was quickest at 262k tokens, 32 to 128 at 49k.
NUM_FOLDS = 64

# From this length on, top-p looks for its end near the maximum before it sorts everything.
LONG = 4096
# How far from the maximum, in nats. Where more than a part of the row is near, it is not worth it.
DEPTHS = (4.0, 10.0)
NEAR_PART = 8

# Else it looks between two logits out of a sample of so many, this many ranks around the one that
# would be the last of the sample: four times what such a sample is off where all are about alike.
NUM_SAMPLED = 4096
NUM_AROUND = 64

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
        last = _last_near(candidates, p) or _last_between(candidates, p)
        if last is not None:
            return _largest(logits, *last)
    values = _descending(logits)
    index = index_of_mass(_weights_of(values, candidates), p, must_exceed=False)
    index = min(index, len(values) - 1)
    return _largest(logits, values[index], index + 1)


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


def _last_between(candidates: Candidates, p: float) -> tuple[np.float32, int] | None:
    """The same, from the logits between two of a sample (after Floyd and Rivest, "Expected time
    bounds for selection", 1975). None: it does not lie between them.

    What the sample says is only where to look; what is found is counted over all of them.
    """
    logits = candidates.logits
    values = _descending(logits[:: len(logits) // NUM_SAMPLED])
    masses = np.cumsum(_weights_of(values, candidates))
    middle = int(np.searchsorted(masses, p * masses[-1]))
    first, last = middle - NUM_AROUND, middle + NUM_AROUND
    is_above = logits > (values[first] if first >= 0 else np.inf)
    is_below = logits < (values[last] if last < len(values) else -np.inf)
    weights = candidates.weights()
    mass = p * float(weights.sum())
    # In place: memory that is touched for the first time costs more than all of this.
    weights *= is_above
    mass -= float(weights.sum())
    between = _descending(logits[~(is_above | is_below)])
    index = int(np.searchsorted(np.cumsum(_weights_of(between, candidates)), mass))
    if mass <= 0 or index == len(between):
        return None
    return between[index], int(np.count_nonzero(is_above)) + index + 1


def _descending(logits: Logits) -> Logits:
    """Not seen from the end of ascending ones, which is slow to compute with."""
    values = np.sort(np.negative(logits))
    np.negative(values, out=values)
    return values


def _weights_of(logits: Logits, candidates: Candidates) -> Weights:
    """The weights that they have among `candidates`."""
    return Candidates(logits, None, candidates.highest, candidates.temperature).weights()


def _largest(logits: Logits, smallest: np.float32, count: int) -> Indices:
    """The indices of the `count` largest, when the last of them is `smallest`."""
    kept = np.flatnonzero(logits >= smallest)
    surplus = len(kept) - count
    if surplus > 0:
        equal = np.flatnonzero(logits[kept] == smallest)
        kept = np.delete(kept, equal[-surplus:])
    return kept
