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

    In an answer with a form the alternatives are among what the form allowed.
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
    highest = float(row.max())
    total = highest + float(np.log(np.exp(row - np.float32(highest)).sum(dtype=np.float64)))
    candidates = row if allowed is None else allowed[: len(row)]
    best = _largest(candidates, num_alternatives)
    return TokenChoice(
        TokenLogprob(token_id, float(row[token_id]) - total),
        tuple(
            TokenLogprob(int(each), float(row[each]) - total)
            for each in best
            if candidates[each] != -np.inf
        ),
    )


def _largest(values: NDArray[np.float32], num: int) -> NDArray[np.intp]:
    """The largest first, of equals the one with the lower index."""
    if num == 0:
        return np.empty(0, np.intp)
    if num >= len(values):
        return np.argsort(-values, kind="stable")
    smallest = np.partition(values, len(values) - num)[len(values) - num]
    near = np.flatnonzero(values >= smallest)
    return near[np.argsort(-values[near], kind="stable")][:num]
