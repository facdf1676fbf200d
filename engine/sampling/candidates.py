"""What is still in the draw: some tokens of a vocabulary, their logits, and the temperature."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Indices = NDArray[np.intp]
Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens in the order of their ids. What counts are `logits / temperature`: the division is
    put off, so that no filter works on numbers that were rounded for it.

    `ids` None: every token, in its place. `highest`: the largest of `logits`, which is finite.
    """

    logits: Logits
    ids: Indices | None
    highest: float
    temperature: float = 1.0

    @classmethod
    def of(cls, logits: Logits, temperature: float = 1.0) -> "Candidates":
        """A whole row; at least one logit is a number, and none is above all numbers."""
        return cls(logits, None, float(logits.max()), temperature)

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def token_ids(self) -> Indices:
        return np.arange(len(self)) if self.ids is None else self.ids

    @property
    def bound(self) -> float:
        """The temperature as what may be divided by: a quotient stays finite, or is -inf."""
        return max(self.temperature, 1e-100)

    def with_temperature(self, temperature: float) -> "Candidates":
        return Candidates(self.logits, self.ids, self.highest, temperature)

    def keep(self, kept: Indices) -> "Candidates":
        """Those at the ascending indices `kept`, which are not empty."""
        logits = self.logits[kept]
        ids = kept if self.ids is None else self.ids[kept]
        return Candidates(logits, ids, float(logits.max()), self.temperature)

    def exponents(self) -> Weights:
        """`[num]`: how far each is below the largest, 0 or less, at this temperature."""
        exponents = self.logits.astype(np.float64)
        exponents -= self.highest
        if self.bound != 1.0:
            with np.errstate(over="ignore"):
                exponents /= self.bound
        return exponents

    def weights(self) -> Weights:
        """`[num]`: what each has beside the likeliest one, which has 1."""
        exponents = self.exponents()
        return np.exp(exponents, out=exponents)

    def probabilities(self) -> Weights:
        weights = self.weights()
        weights /= weights.sum()
        return weights

    def token(self, index: int) -> int:
        """The id of the candidate at an index."""
        return index if self.ids is None else int(self.ids[index])

    def find(self, token_ids: Indices) -> Indices:
        """The indices of those of the ascending `token_ids` that are candidates."""
        if self.ids is None:
            return token_ids[token_ids < len(self)]
        places = np.searchsorted(self.ids, token_ids)
        is_found = places < len(self.ids)
        is_found[is_found] = self.ids[places[is_found]] == token_ids[is_found]
        return places[is_found]


def entropy(exponents: Weights) -> float:
    """Of a distribution given by exponents, in nats; what has no chance adds nothing."""
    weights = np.exp(exponents)
    total = float(weights.sum())
    # -sum p ln p, with ln p = exponent - ln total.
    known = weights > 0
    return math.log(total) - float((weights[known] * exponents[known]).sum()) / total
