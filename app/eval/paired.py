"""How sure a difference is that was measured on the same questions twice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NUM_DRAWN = 10_000
SEED = 7


class Difference(NamedTuple):
    """`mean` of so many pairs, and the interval that holds 95 of 100 means of questions drawn
    again from these."""

    mean: float
    low: float
    high: float


def difference(one: Sequence[float], other: Sequence[float]) -> Difference | None:
    """How much more `one` has. None: there are no pairs."""
    apart = np.array([first - second for first, second in zip(one, other, strict=True)], float)
    if not len(apart):
        return None
    rng = np.random.default_rng(SEED)
    means = [float(rng.choice(apart, len(apart)).mean()) for _ in range(NUM_DRAWN)]
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(apart.mean()), float(low), float(high))
