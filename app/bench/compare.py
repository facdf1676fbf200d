"""Compare two sides on a noisy machine: interleaved pairs, and the median of their ratios.

    pair 0: ours, theirs    pair 1: theirs, ours    pair 2: ours, theirs    ...

Whatever else the machine does meets both halves of a pair alike, and taking turns at going first
cancels what the first half leaves behind. Pairs are added until every figure is narrow enough to
be judged or the time is up.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from time import perf_counter
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MIN_PAIRS = 20
CONFIDENCE = 0.95
WIDTH = 0.10
"""How far the interval may reach to either side of the median, as a share of it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A median with its 95 % interval, of `num` measurements."""

    median: float
    low: float
    high: float
    num: int

    @property
    def width(self) -> float:
        """The wider side of the interval, as a share of the median."""
        wider = max(self.median - self.low, self.high - self.median)
        return wider / abs(self.median) if self.median else float("inf")

    @property
    def is_narrow(self) -> bool:
        return self.width <= WIDTH

    def __str__(self) -> str:
        return f"{self.median:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure must reach, from below or from above."""

    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, figure: Figure) -> bool:
        """The median meets it, and the interval is narrow enough to believe the median."""
        return figure.is_narrow and self.is_met_by(figure.median)

    def is_met_by(self, value: float) -> bool:
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


def figure_of(values: Sequence[float]) -> Figure:
    """The median and the order statistics around it; all there is, when too few for 95 %."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there is nothing to take the median of")
    rank = interval_rank(len(ordered))
    return Figure(median(ordered), ordered[rank], ordered[-1 - rank], len(ordered))


def interval_rank(num: int) -> int:
    """The deepest rank whose interval, that rank from either end, holds the true median with 95 %.

    Whatever the distribution is, each value lies below its median with one half: coin tosses.
    """
    outside = 0.0
    rank = 0
    while rank < num // 2:
        outside += 2 * comb(num, rank) / 2**num
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    return max(0, rank - 1)


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """One measurement of either side, taken one right after the other."""

    ours: T
    theirs: T


def interleave(
    ours: Callable[[int], T],
    theirs: Callable[[int], T],
    ratios: Callable[[Pair[T]], Mapping[str, float]],
    *,
    minutes: float,
    min_pairs: int = MIN_PAIRS,
    clock: Callable[[], float] = perf_counter,
    on_pair: Callable[[int, Mapping[str, float]], Any] = lambda number, found: None,
) -> tuple[list[Pair[T]], dict[str, Figure]]:
    """Measure pairs until every ratio is narrow, at least `min_pairs`; `minutes` end it anyway.

    Both sides get the number of the pair, so that they can do the same work.
    """
    pairs: list[Pair[T]] = []
    found: dict[str, list[float]] = {}
    ends = clock() + 60 * minutes
    while True:
        number = len(pairs)
        if number % 2 == 0:
            first = ours(number)
            pair = Pair(first, theirs(number))
        else:
            first = theirs(number)
            pair = Pair(ours(number), first)
        pairs.append(pair)
        values = ratios(pair)
        for name, value in values.items():
            found.setdefault(name, []).append(value)
        on_pair(len(pairs), values)
        figures = {name: figure_of(values) for name, values in found.items()}
        is_settled = len(pairs) >= min_pairs and all(one.is_narrow for one in figures.values())
        if is_settled or clock() >= ends:
            return pairs, figures


def show_pair(label: str = "") -> Callable[[int, Mapping[str, float]], None]:
    """For `on_pair`: a line on standard error for whoever waits."""

    def show(number: int, found: Mapping[str, float]) -> None:
        values = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        print(f"{label}pair {number}: {values}", file=sys.stderr, flush=True)

    return show
