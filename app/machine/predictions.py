"""How models of usual sizes would do here, by the two rates of the machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.machine.rates import Rates

USUAL_MODELS = ((0.5, 0.4e9), (1.5, 1.1e9), (3.0, 2.0e9), (8.0, 4.9e9), (14.0, 9.0e9))
"""File sizes of usual 4-bit models, by their parameters in billions."""
# Beside the weights: the KV of a conversation, and what a step needs.
MEMORY_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class Prediction:
    """A 4-bit model of this size. The speeds are bounds: no model here can be faster."""

    parameters_billion: float
    fits: bool
    tokens_per_second: float
    read_tokens_per_second: float


def predict(rates: Rates, available: int) -> list[Prediction]:
    """Each token that is written reads the whole model once, and each that is read multiplies with
    every weight. `available`: bytes of memory that are free."""
    return [
        Prediction(
            billions,
            size * MEMORY_FACTOR < available,
            rates.read_bytes_per_s / size,
            rates.multiply_adds_per_s / (billions * 1e9),
        )
        for billions, size in USUAL_MODELS
    ]


def as_lines(predictions: Sequence[Prediction]) -> list[str]:
    lines = []
    for each in predictions:
        speeds = (
            f"writes at most {each.tokens_per_second:,.0f} and reads at most"
            f" {each.read_tokens_per_second:,.0f} tokens/s"
        )
        verdict = speeds if each.fits else "does not fit into the free memory"
        lines.append(f"{each.parameters_billion:4.1f} billion parameters {verdict}")
    return lines
