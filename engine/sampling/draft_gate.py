"""Whether guessing tokens pays on this machine: what a step of more tokens costs, and gains.

    cost of a step    base(tokens) + looks x (time of a look)      a look: one token at one cell

The base is measured when the model is loaded and learned on from short conversations, the time of
a look from long ones. What a guess of n tokens brings when each is right with probability a, if
those before it were, is 1 + a + ... + a^n tokens (Leviathan et al., arXiv 2211.17192, section 3).
"""

from bisect import bisect_left, insort

# A guess must promise so much, because what it promises is uncertain.
MIN_GAIN = 1.1
# Up to here the looks are a small part of a step's time.
SHALLOW_LOOKS = 512
WEIGHT = 0.2
# So many times what is known is the most that one step can make believe.
MOST_SURPRISE = 2.0
# How fast it is forgotten that guessing was dear behind a long conversation.
FORGETTING = 0.01


class StepCosts:
    """Seconds a step takes, by its tokens and by how far each looks back. Learned by the engine
    thread from the steps themselves; unknown until `learn` was called for two sizes."""

    def __init__(self) -> None:
        self._bases: dict[int, float] = {}
        self._sizes: list[int] = []
        self._look = 0.0
        self._look_of_many: float | None = None

    @property
    def is_known(self) -> bool:
        return len(self._bases) > 1

    def measured(self, num_tokens: int, seconds: float) -> None:
        """A step without looks, before the first request: of several the fastest counts, since what
        was slower waited for something else."""
        self._note(num_tokens, min(seconds, self._bases.get(num_tokens, seconds)))

    def learn(self, num_tokens: int, num_looks: int, seconds: float) -> None:
        """`num_tokens` were computed in this time, with all their looks at earlier ones."""
        if num_looks <= SHALLOW_LOOKS * num_tokens:
            known = self._bases.get(num_tokens)
            seconds = max(0.0, seconds - num_looks * self._time_of_a_look(num_tokens))
            if known is not None:
                # One that was held up must not say much.
                seconds = _blend(known, min(seconds, MOST_SURPRISE * known))
            self._note(num_tokens, seconds)
        elif self._bases:
            look = max(0.0, seconds - self._base(num_tokens)) / num_looks
            if num_tokens == 1:
                self._look = _blend(self._look, look)
                if self._look_of_many is not None:
                    self._look_of_many += FORGETTING * (self._look - self._look_of_many)
            else:
                self._look_of_many = _blend(self._time_of_a_look(num_tokens), look)

    def seconds(self, num_tokens: int, num_looks: int) -> float:
        return self._base(num_tokens) + num_looks * self._time_of_a_look(num_tokens)

    def _note(self, num_tokens: int, seconds: float) -> None:
        if num_tokens not in self._bases:
            insort(self._sizes, num_tokens)
        self._bases[num_tokens] = seconds

    def _time_of_a_look(self, num_tokens: int) -> float:
        if num_tokens == 1 or self._look_of_many is None:
            return self._look
        return self._look_of_many

    def _base(self, num_tokens: int) -> float:
        """Between two known sizes and beyond them on a straight line; never falling."""
        known = self._bases.get(num_tokens)
        if known is not None:
            return known
        sizes = self._sizes
        if len(sizes) == 1:
            return self._bases[sizes[0]] * num_tokens / sizes[0]
        above = min(bisect_left(sizes, num_tokens), len(sizes) - 1)
        low, high = sizes[max(0, above - 1)], sizes[max(1, above)]
        slope = max(0.0, self._bases[high] - self._bases[low]) / (high - low)
        return max(0.0, self._bases[low] + slope * (num_tokens - low))


def best_length(
    costs: StepCosts,
    acceptance: float,
    most: int,
    num_writing: int,
    num_looks: int,
    seconds_each: float = 0.0,
) -> int:
    """How many tokens to guess for one of `num_writing` requests, which together have
    `num_looks` in a step without guesses; 0 where it does not pay.

    `acceptance`: the share of guesses that come true, of those that follow right ones.
    `seconds_each`: what it takes to guess a token.
    """
    if most <= 0 or not costs.is_known:
        return 0
    plain = costs.seconds(num_writing, num_looks)
    looks_each = num_looks / num_writing
    best, best_gain = 0, MIN_GAIN
    expected, share = 1.0, 1.0
    for length in range(1, most + 1):
        share *= acceptance
        expected += share
        drafted = costs.seconds(num_writing + length, int(num_looks + length * looks_each))
        drafted += length * seconds_each
        gain = (num_writing - 1 + expected) / num_writing * plain / max(drafted, 1e-9)
        if gain > best_gain:
            best, best_gain = length, gain
    return best


def _blend(known: float, seen: float) -> float:
    return (1 - WEIGHT) * known + WEIGHT * seen
