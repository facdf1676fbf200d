"""Adaptive-p: prefer tokens of about a certain probability, and make up for what was drawn.

The method and its constants are those of llama.cpp's pull request 17927.
"""

import numpy as np

from engine.sampling.candidates import Candidates

WIDTH = 0.3
PEAK = 5.0
SHARPNESS = 10.0


class AdaptiveP:
    """The mean probability of what was drawn, the latest the weightiest. Owned by the state of one
    request."""

    def __init__(self, target: float, decay: float) -> None:
        self._target = target
        self._decay = decay
        # As if the target had been met so far, or the first draws would weigh too much.
        self.weighted_sum = target / (1 - decay)
        self.total_weight = 1 / (1 - decay)

    def copy(self) -> "AdaptiveP":
        other = AdaptiveP(self._target, self._decay)
        other.weighted_sum, other.total_weight = self.weighted_sum, self.total_weight
        return other

    def shape(self, candidates: Candidates) -> Candidates:
        """The same tokens, with logits that are highest where the probability is wanted."""
        wanted = 2 * self._target - self.weighted_sum / self.total_weight
        distances = np.abs(candidates.probabilities() - min(1.0, max(0.0, wanted))) / WIDTH
        shaped = PEAK - SHARPNESS * distances**2 / (1 + distances)
        logits = np.where(np.isneginf(candidates.logits), -np.inf, shaped).astype(np.float32)
        return Candidates(logits, candidates.ids, float(logits.max()))

    def observe(self, probability: float) -> None:
        """`probability`: what the token that was drawn had before `shape`."""
        self.weighted_sum = probability + self._decay * self.weighted_sum
        self.total_weight = 1 + self._decay * self.total_weight
