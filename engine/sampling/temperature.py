"""The temperature that moves with how sure the model is (llama.cpp's `temp_ext`)."""

import math

import numpy as np

from engine.sampling.candidates import Candidates, entropy


def dynamic_temperature(
    candidates: Candidates, middle: float, reach: float, exponent: float
) -> float:
    """From `middle - reach` (at least 0) where there is no doubt to `middle + reach` where all
    candidates are equal; `middle` when there is only one."""
    num_possible = int(np.count_nonzero(np.isfinite(candidates.logits)))
    if num_possible <= 1:
        return middle
    doubt = entropy(candidates.exponents()) / math.log(num_possible)
    least, most = max(0.0, middle - reach), middle + reach
    # Rounding may lead a hair beyond either end.
    return float(least + (most - least) * min(1.0, max(0.0, doubt)) ** exponent)
