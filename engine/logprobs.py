"""How likely a token was, and what else could have come.

Logarithms of the model's own probabilities: before penalties, temperature and filters, so that they
do not depend on how somebody chooses to sample.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_ALTERNATIVES = 20
"""Of one token, for whoever asks from outside."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and the natural logarithm of its probability, at most 0."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """The token that came at one place, and the likeliest ones there, the best one first.

    Where a form left a choice, the alternatives are among what it allowed.
    """

    chosen: TokenLogprob
    alternatives: tuple[TokenLogprob, ...] = ()


def choice_of(
    row: NDArray[np.float32],
    token_id: int,
    num_alternatives: int,
    allowed: NDArray[np.float32] | None = None,
) -> TokenChoice:
    """From the logits `row` of a model. `allowed`: the same logits, with -inf for those tokens
    that cannot be alternatives; all can without it."""
    total = log_total(row)
    best = likeliest(row if allowed is None else allowed[: len(row)], num_alternatives)
    return TokenChoice(
        TokenLogprob(token_id, float(row[token_id]) - total),
        tuple(TokenLogprob(int(each), float(row[each]) - total) for each in best),
    )


def log_total(row: NDArray[np.float32]) -> float:
    """What to take from a logit for the logarithm of its probability."""
    highest = float(row.max())
    return highest + float(np.log(np.exp(row - np.float32(highest)).sum(dtype=np.float64)))


def likeliest(row: NDArray[np.float32], num: int) -> NDArray[np.intp]:
    """The largest of what is possible at all, the largest first, and of equals the lower index."""
    if num == 0:
        return np.empty(0, np.intp)
    near = np.flatnonzero(row > -np.inf)
    if num < len(near):
        smallest = np.partition(row[near], len(near) - num)[len(near) - num]
        near = near[row[near] >= smallest]
    return near[np.argsort(-row[near], kind="stable")][:num]
