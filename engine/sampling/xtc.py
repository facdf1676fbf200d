"""Exclude top choices: now and then the obvious is left out, so that the less obvious comes.

Ends and line breaks must stay where they belong, or an answer never ends or paragraphs run into
each other. So nothing is left out of a draw in which one of them would be.
"""

import numpy as np

from engine.sampling.candidates import Candidates, Indices


def without_top_choices(candidates: Candidates, threshold: float, protected: Indices) -> Indices:
    """The indices that stay: all but those with at least the probability `threshold`, of which the
    least likely one stays (of equals, the last). All stay when there is only one such, or when one
    of the ascending ids `protected` would go."""
    everyone = np.arange(len(candidates))
    probabilities = candidates.probabilities()
    choices = np.flatnonzero((probabilities >= threshold) & (probabilities > 0))
    if len(choices) < 2:
        return everyone
    least = probabilities[choices].min()
    stays = choices[np.flatnonzero(probabilities[choices] == least)[-1]]
    leaving = choices[choices != stays]
    if np.isin(candidates.find(protected), leaving).any():
        return everyone
    return np.delete(everyone, leaving)
