"""The filters that decide which tokens stay in the draw, and the draw itself.

Every filter takes a vector of logits, a whole row or what an earlier filter left of it, and gives
the ascending indices it keeps; the largest logit is always among them. Equal logits keep the lower
index. No filter sorts a whole row when a threshold can spare it, and no shortcut changes a result.
"""

import math

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Indices = NDArray[np.intp]

# A row is folded this often for a threshold: 64 was quickest at 262k tokens, 32 to 128 at 49k.
NUM_FOLDS = 64

# From this length on, top-p looks for its end near the maximum before it sorts everything.
LONG = 4096

# How far float32 may put the mass of a row from its float64 value, with a wide margin.
MASS_ERROR = 1e-5


def top_k(logits: Logits, k: int) -> Indices:
    """The `k` largest; all of them when there are fewer."""
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


def top_p(logits: Logits, p: float, highest: float) -> Indices:
    """The fewest largest logits that hold the share `p` of the probability; at least one.

    `highest` is the largest of `logits`.
    """
    if len(logits) >= LONG:
        with np.errstate(over="ignore"):
            shifted = logits - np.float32(highest)
        total = float(np.exp(shifted, out=shifted).sum(dtype=np.float64))
        least, most = (p - MASS_ERROR) * total, (p + MASS_ERROR) * total
        for depth in (4.0, 10.0):
            values = _descending(logits[logits >= np.float32(highest - depth)])
            masses = np.cumsum(np.exp(values - highest))
            first, last = np.searchsorted(masses, (least, most))
            # Only when the error cannot move the end, and the end lies among these.
            if first == last < len(values):
                return _largest(logits, np.float32(values[first]), int(first) + 1)
    values = _descending(logits)
    masses = np.cumsum(np.exp(values - highest))
    count = min(int(np.searchsorted(masses, p * masses[-1])) + 1, len(values))
    return _largest(logits, np.float32(values[count - 1]), count)


def min_p(logits: Logits, share: float, highest: float) -> Indices:
    """Those with at least `share` of the probability of the most likely one.

    `highest` is the largest of `logits`; `share` is above 0.
    """
    exact = highest + math.log(share)
    floor = np.float32(exact)
    if float(floor) < exact:
        floor = np.nextafter(floor, np.float32(math.inf))
    return np.flatnonzero(logits >= floor)


def draw(logits: Logits, temperature: float, highest: float, generator: np.random.Generator) -> int:
    """An index, drawn with the probabilities that `temperature` (above 0) gives."""
    # The bound keeps a quotient finite however small the temperature.
    scaled = (logits.astype(np.float64) - highest) / max(temperature, 1e-100)
    masses = np.cumsum(np.exp(scaled, out=scaled))
    # At most 1 - 2^-53 is drawn, and that share of a float64 never rounds up to the whole: the
    # first mass above the point exists, and it belongs to a token with a probability.
    point = generator.random() * float(masses[-1])
    return int(np.searchsorted(masses, point, side="right"))


def _descending(logits: Logits) -> NDArray[np.float64]:
    return np.sort(logits)[::-1].astype(np.float64)


def _largest(logits: Logits, smallest: np.float32, count: int) -> Indices:
    """The indices of the `count` largest, when the last of them is `smallest`."""
    kept = np.flatnonzero(logits >= smallest)
    surplus = len(kept) - count
    if surplus > 0:
        equal = np.flatnonzero(logits[kept] == smallest)
        kept = np.delete(kept, equal[-surplus:])
    return kept
