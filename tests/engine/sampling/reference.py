"""Every sampling step a second time: the definition, plainly, in float64, over whole rows.

A filter gives the set of ids that stay. Nothing here is shared with the engine.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np


def softmax(logits, temperature=1.0):
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def by_rank(logits):
    """Ids from the most likely to the least; of equals, the lower id first."""
    return sorted(range(len(logits)), key=lambda index: (-float(logits[index]), index))


def entropy(probabilities):
    return -sum(p * math.log(p) for p in probabilities if p > 0)


def top_k(logits, k):
    return set(by_rank(logits)[:k]) if k > 0 else set(range(len(logits)))


def top_p(logits, p, temperature=1.0):
    probabilities = softmax(logits, temperature)
    kept, mass = set(), 0.0
    for index in by_rank(logits):
        kept.add(index)
        mass += probabilities[index]
        if mass >= p:
            break
    return kept


def min_p(logits, share, temperature=1.0):
    probabilities = softmax(logits, temperature)
    least = share * max(probabilities)
    return {i for i, p in enumerate(probabilities) if p >= least}


def typical(logits, p):
    probabilities = softmax(logits)
    average = entropy(probabilities)
    distances = [abs(-math.log(q) - average) if q > 0 else math.inf for q in probabilities]
    kept, mass = set(), 0.0
    for index in sorted(range(len(logits)), key=lambda i: (distances[i], i)):
        kept.add(index)
        mass += probabilities[index]
        if mass > p:
            break
    return kept


def tail_free(logits, z):
    order = by_rank(logits)
    probabilities = softmax(logits)[order]
    if len(order) < 3:
        return set(order)
    first = [probabilities[i + 1] - probabilities[i] for i in range(len(order) - 1)]
    second = [abs(first[i + 1] - first[i]) for i in range(len(first) - 1)]
    if sum(second) == 0:
        return set(order)
    kept, spent = {order[0]}, 0.0
    whole = sum(second)
    for index, bend in zip(order[1:-1], second, strict=True):
        spent += bend / whole
        if spent > z:
            break
        kept.add(index)
    return kept


def top_a(logits, share):
    probabilities = softmax(logits)
    least = share * max(probabilities) ** 2
    return {i for i, p in enumerate(probabilities) if p >= least}


def epsilon(logits, least):
    probabilities = softmax(logits)
    most = max(probabilities)
    return {i for i, p in enumerate(probabilities) if p >= least or p == most}


def eta(logits, least):
    return epsilon(logits, min(least, math.sqrt(least) * math.exp(-entropy(softmax(logits)))))


def top_n_sigma(logits, n):
    possible = [float(z) for z in logits if z != -math.inf]
    mean = math.fsum(possible) / len(possible)
    sigma = math.sqrt(math.fsum((z - mean) ** 2 for z in possible) / len(possible))
    least = max(possible) - n * sigma
    return {i for i, z in enumerate(logits) if z >= least}


def xtc(logits, threshold, protected=()):
    """What stays when the chance has it that something is left out."""
    probabilities = softmax(logits)
    choices = [i for i in by_rank(logits) if probabilities[i] >= threshold]
    leaving = set(choices[:-1])
    if leaving & set(protected):
        leaving = set()
    return set(range(len(logits))) - leaving


def dynamic_temperature(logits, middle, reach, exponent):
    possible = [z for z in logits if z != -math.inf]
    if len(possible) < 2:
        return middle
    doubt = min(1.0, entropy(softmax(possible)) / math.log(len(possible)))
    least, most = max(0.0, middle - reach), middle + reach
    return least + (most - least) * doubt**exponent


def mirostat_1(logits, mu, num_tokens):
    order = by_rank(logits)
    probabilities = softmax(logits)[order]
    pairs = range(min(100, len(order)) - 1)
    falls = [math.log((i + 2) / (i + 1)) for i in pairs]
    ratios = [math.log(probabilities[i] / probabilities[i + 1]) for i in pairs]
    slope = sum(t * b for t, b in zip(falls, ratios, strict=True)) / sum(t * t for t in falls)
    epsilon_hat = slope - 1
    k = (epsilon_hat * 2**mu / (1 - num_tokens**-epsilon_hat)) ** (1 / slope)
    return set(order[: max(1, int(min(k, len(order))))])


def mirostat_2(logits, mu):
    probabilities = softmax(logits)
    kept = {i for i, p in enumerate(probabilities) if p > 0 and -math.log2(p) <= mu}
    return kept or {by_rank(logits)[0]}


class Adaptive:
    def __init__(self, target, decay):
        self.target, self.decay = target, decay
        self.drawn = []

    def probabilities(self, logits):
        """Of the draw; before the first one the target counts as what was drawn for ever."""
        mean_sum = self.target / (1 - self.decay)
        weight = 1 / (1 - self.decay)
        for p in self.drawn:
            mean_sum, weight = p + self.decay * mean_sum, 1 + self.decay * weight
        wanted = min(1.0, max(0.0, 2 * self.target - mean_sum / weight))
        shaped = []
        for p, z in zip(softmax(logits), logits, strict=True):
            distance = abs(p - wanted) / 0.3
            shape = 5 - 10 * distance**2 / (1 + distance)
            shaped.append(shape if z != -math.inf else -math.inf)
        return softmax(shaped)


def penalised(logits, tokens: Sequence[int], num_prompt, params):
    result = [float(z) for z in logits]
    for token in set(tokens[max(0, len(tokens) - params.penalty_window) :]):
        factor = params.repetition_penalty
        result[token] = result[token] / factor if result[token] > 0 else result[token] * factor
    for token, count in Counter(tokens[num_prompt:]).items():
        result[token] -= params.frequency_penalty * count + params.presence_penalty
    return result


def completing_ngrams(tokens, size):
    """Ids that followed the last `size - 1` tokens somewhere before."""
    before = tuple(tokens[len(tokens) - size + 1 :]) if size > 1 else ()
    return {
        tokens[start + size - 1]
        for start in range(len(tokens) - size + 1)
        if tuple(tokens[start : start + size - 1]) == before
    }


def dry(tokens, multiplier, base, allowed, window, is_breaker=lambda token: False):
    """What to take off, by id: for each earlier end of a run, how far back it agrees."""
    tokens = tokens[max(0, len(tokens) - window) :]
    amounts = {}
    for end in range(len(tokens) - 1):
        length = 0
        while length <= end:
            mine, theirs = tokens[len(tokens) - 1 - length], tokens[end - length]
            if mine != theirs or is_breaker(mine):
                break
            length += 1
        following = tokens[end + 1]
        if length >= allowed and not is_breaker(following):
            exponent = length - allowed
            if base > 1.000001:
                exponent = min(exponent, int(88.7228391 / math.log(base)))
            amount = multiplier * base**exponent
            amounts[following] = max(amounts.get(following, 0.0), amount)
    return amounts
