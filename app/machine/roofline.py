"""How near a model comes to what this machine could do: the roofline of Williams et al., CACM 2009.

Whoever reads few bytes for many operations is held up by arithmetic, whoever reads many by memory.
Writing does two operations with each weight that it reads from memory; reading a text does as many
for each token of a piece, so the same bytes serve hundreds.
"""

from dataclasses import dataclass, replace

from app.machine.costs import Costs, Work
from app.machine.rates import Rates
from engine.backends.llama_cpp.weights import Weights

OPERATIONS = 2
"""A multiplication and an addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One kind of work of a model, as it was measured, below what is possible for it."""

    name: str
    operations_per_byte: float
    operations_per_s: float
    possible_operations_per_s: float
    tokens_per_s: float

    @property
    def share(self) -> float:
        return self.operations_per_s / self.possible_operations_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The two roofs, and a model's phases below them. `weights`: the type whose product is the
    flat roof."""

    model: str
    weights: str
    num_threads: int
    read_bytes_per_s: float
    peak_operations_per_s: float
    phases: tuple[Phase, ...]

    @property
    def ridge(self) -> float:
        """Operations per byte from which on arithmetic is what holds up."""
        return self.peak_operations_per_s / self.read_bytes_per_s

    def possible(self, operations_per_byte: float) -> float:
        return min(self.peak_operations_per_s, operations_per_byte * self.read_bytes_per_s)


def roofline_of(
    model: str, weights: Weights, costs: Costs, rates: Rates, peak_multiply_adds: float, piece: int
) -> Roofline:
    """`peak_multiply_adds`: a second, of weights of the model's main type. `piece`: the most tokens
    that are read in one step. What attention does with the KV of a short text is left out."""
    roofs = Roofline(
        model=model,
        weights=weights.main_type,
        num_threads=rates.num_threads,
        read_bytes_per_s=rates.read_bytes_per_s,
        peak_operations_per_s=OPERATIONS * peak_multiply_adds,
        phases=(),
    )
    reading, writing = costs.reading, costs.writing
    for_each = weights.layer_multiply_adds
    with_head = for_each + weights.head_multiply_adds
    in_a_step = min(piece, reading.num_tokens)
    return replace(
        roofs,
        phases=(
            _phase(roofs, "writing", writing, with_head, 1, weights),
            _phase(roofs, "reading", reading, for_each, in_a_step, weights),
        ),
    )


def _phase(
    roofs: Roofline, name: str, work: Work, multiply_adds: float, in_a_step: int, weights: Weights
) -> Phase:
    operations = OPERATIONS * multiply_adds
    per_byte = operations * in_a_step / weights.bytes_of_a_step
    return Phase(
        name=name,
        operations_per_byte=per_byte,
        operations_per_s=operations * work.tokens_per_second,
        possible_operations_per_s=roofs.possible(per_byte),
        tokens_per_s=work.tokens_per_second,
    )
