"""How like two models predict a text: perplexity, divergence, and the same first choice.

The divergence of Kullback and Leibler says how many nats are lost for each token when the one model
stands in for the other; 0 means that nothing is. As llama.cpp's own measure does, each window of
the text is read from its beginning and its second half is counted, so that every token that counts
has a context.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(slots=True)
class Likeness:
    """Of one model to a reference, over the tokens that were counted so far."""

    losses: list[float] = field(default_factory=list)
    """Nats of each token that really came."""
    divergences: list[float] = field(default_factory=list)
    num_same: int = 0
    """How often both find the same token likeliest."""

    def count(self, logits: Logits, reference: Logits, targets: Sequence[int]) -> None:
        """`[num_rows, num_tokens]` each, and the tokens that came after each row."""
        ours, theirs = log_probabilities(logits), log_probabilities(reference)
        self.losses += [-float(row[target]) for row, target in zip(ours, targets, strict=True)]
        # What the reference finds impossible counts as nothing, whatever the other one says.
        is_possible = np.isfinite(theirs)
        with np.errstate(invalid="ignore"):
            terms = np.where(is_possible, np.exp(theirs) * (theirs - ours), 0.0)
        # Never below zero but by rounding.
        self.divergences += np.maximum(0.0, terms.sum(axis=1)).tolist()
        self.num_same += int((ours.argmax(axis=1) == theirs.argmax(axis=1)).sum())

    @property
    def num_tokens(self) -> int:
        return len(self.losses)

    @property
    def perplexity(self) -> float:
        return float(np.exp(np.mean(self.losses)))

    @property
    def divergence(self) -> float:
        return float(np.mean(self.divergences))

    @property
    def divergence_error(self) -> float:
        """The standard error of that mean."""
        return float(np.std(self.divergences) / np.sqrt(max(1, len(self.divergences))))

    @property
    def worst_divergence(self) -> float:
        """Of the worst token in a hundred."""
        return float(np.percentile(self.divergences, 99))

    @property
    def same_top(self) -> float:
        return self.num_same / max(1, self.num_tokens)


def log_probabilities(logits: Logits) -> NDArray[np.float64]:
    """Of each row."""
    rows = logits.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    total: NDArray[np.float64] = np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return rows - total
