"""What KV is worth, in one figure that orders everything that could be evicted.

    worth per byte = probability of return * seconds to read the tokens again / their bytes

Bytes grow with tokens as the reading does, so what remains is the probability. It is halved every
half hour since the last use; a branch that its conversation has left counts a quarter, and what
several conversations begin with counts eight times.

Of the ways to weigh a cache's entries this is the simplest that lets old branches go before live
ones; that the ends of conversations go before their beginnings is seen to by who evicts (leaves
first). Evicting tokens that future turns hardly need cuts the worst waiting times by about a
quarter against plain LRU (Tail-Optimized LRU, arXiv 2510.15152).
"""

from math import log2

HALF_LIFE_S = 30 * 60.0
OLD_BRANCH = 0.25
SHARED = 8.0


def worth(last_used: float, *, is_old_branch: bool = False, is_shared: bool = False) -> float:
    """The logarithm of the probability of return, as the time of a last use that would equal it.

    It falls for everything alike as time goes by, so the order needs no clock.
    """
    weight = (OLD_BRANCH if is_old_branch else 1.0) * (SHARED if is_shared else 1.0)
    return last_used + HALF_LIFE_S * log2(weight)
