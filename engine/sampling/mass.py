"""Sums of weights over many tokens: where a sum is reached, without sorting what need not be."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.sampling.candidates import Indices, Weights

# Up to so many weights the plain way costs less than a clever one.
FEW = 4096
NUM_BINS = 1024
BLOCK = 512

Side = Literal["left", "right"]


def nearest_with_mass(
    distances: Weights, weights: Weights, mass: float, *, must_exceed: bool = False
) -> Indices:
    """The ascending indices of the fewest nearest that together reach `mass`, or exceed it; all,
    if they never do, and at least one. Of equally near ones those with lower indices come first.

    Instead of sorting, what is near is counted in bins, and again only in the bin in which the
    mass is reached.
    """
    side: Side = "right" if must_exceed else "left"
    near, near_weights = distances, weights
    while len(near) > FEW:
        bins = _bins_of(near)
        if bins is None:
            break
        masses = np.cumsum(np.bincount(bins, near_weights, NUM_BINS))
        reached = int(np.searchsorted(masses, mass, side))
        if reached == NUM_BINS:
            return np.arange(len(distances))
        if reached:
            mass -= float(masses[reached - 1])
        in_question = bins == reached
        near, near_weights = near[in_question], near_weights[in_question]
    order = np.argsort(near, kind="stable")
    count = min(int(np.searchsorted(np.cumsum(near_weights[order]), mass, side)) + 1, len(order))
    last = near[order[count - 1]]
    num_last = int(np.count_nonzero(near[order[:count]] == last))
    kept = np.flatnonzero(distances <= last)
    equal = np.flatnonzero(distances[kept] == last)
    return np.delete(kept, equal[num_last:]) if num_last < len(equal) else kept


def index_of_mass(weights: Weights, share: float, *, must_exceed: bool = True) -> int:
    """The first index at which the running sum exceeds the share, below 1, of the whole sum, or
    reaches it. Where it exceeds it, the weight is above 0."""
    side: Side = "right" if must_exceed else "left"
    if len(weights) <= FEW:
        running = np.cumsum(weights)
        return int(np.searchsorted(running, share * running[-1], side))
    # Each number of a running sum waits for the one before, so most of it is taken in blocks.
    ends = np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), BLOCK)))
    mass = share * float(ends[-1])
    block = int(np.searchsorted(ends, mass, side))
    if block:
        mass -= float(ends[block - 1])
    inside = weights[block * BLOCK : (block + 1) * BLOCK]
    index = int(np.searchsorted(np.cumsum(inside), mass, side))
    if index == len(inside):
        # The block's own running sum was rounded to less than its sum.
        index = int(np.flatnonzero(inside)[-1])
    return block * BLOCK + index


def _bins_of(distances: Weights) -> NDArray[np.intp] | None:
    """A bin for each, nearer ones in lower bins, and not all in one. None: they are too alike."""
    possible = distances if np.isfinite(distances).all() else distances[np.isfinite(distances)]
    if not len(possible):
        return None
    nearest, farthest = float(possible.min()), float(possible.max())
    if not 0.0 < farthest - nearest < np.inf:
        return None
    scale = NUM_BINS / (farthest - nearest)
    if not np.isfinite(scale):
        return None
    places = (distances - nearest) * scale
    return np.minimum(places, NUM_BINS - 1, out=places).astype(np.intp)
