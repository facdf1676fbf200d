"""The product whose speed is measured: it runs for every type, on as many threads as asked for."""

from contextlib import ExitStack

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from engine.backends.llama_cpp.matrix_product import (
    TYPES,
    Product,
    multiply_adds_per_second,
    quantised_weights,
    random_numbers,
)
from engine.errors import InvalidParams


@pytest.mark.parametrize("name", TYPES)
def test_every_type_can_be_measured(name: str) -> None:
    assert multiply_adds_per_second(name, 1, num_tokens=2, seconds=0.0) > 1e6


def test_an_unknown_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidParams, match="Q9_X.*choose one of F32, F16"):
        multiply_adds_per_second("Q9_X", 1)


@pytest.mark.parametrize("name", TYPES)
def test_what_is_measured_is_a_right_product(name: str) -> None:
    """Weights that are packed in another way for speed would show here, if they were not right."""
    kind = TYPES[name]
    with ExitStack() as stack:
        product = Product(stack, kind, 2, 5)
        product.compute()
        found = product.result()
    weights = dequantize(quantised_weights(kind), GGMLQuantizationType(kind))
    expected = random_numbers(5) @ weights.T
    # The columns are rounded, too: to 8 bits where the weights have few.
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
