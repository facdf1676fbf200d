"""Where a model's phases lie below the two roofs."""

import pytest

from app.machine.costs import Costs, Work
from app.machine.rates import Rates
from app.machine.roofline import roofline_of
from engine.backends.llama_cpp.gguf_header import Tensor
from engine.backends.llama_cpp.matrix_product import TYPES as KINDS
from engine.backends.llama_cpp.weights import Weights

# 100 million weights of half a byte and a scale, and a head of 10 million of one byte and a scale.
WEIGHTS = Weights(
    (
        Tensor("blk.0.ffn_up.weight", (1000, 100_000), KINDS["Q4_0"]),
        Tensor("output.weight", (1000, 10_000), KINDS["Q8_0"]),
        Tensor("token_embd.weight", (1000, 10_000), KINDS["F16"]),
    )
)
COSTS = Costs(
    reading=Work(num_tokens=300, seconds=3.0, processor_seconds=6.0),
    writing=Work(num_tokens=30, seconds=1.0, processor_seconds=2.0),
)
RATES = Rates(read_bytes_per_s=6e9, multiply_adds_per_s=1e9, num_threads=2)


def test_writing_does_two_operations_with_each_weight_it_reads() -> None:
    writing, _ = roofline_of("m", WEIGHTS, COSTS, RATES, 2e10, 512).phases
    assert writing.operations_per_byte == pytest.approx(220e6 / 66.875e6)
    assert writing.operations_per_s == pytest.approx(30 * 220e6)
    # Memory gives all weights 90 times a second.
    assert writing.possible_operations_per_s == pytest.approx(6e9 / 66.875e6 * 220e6)
    assert writing.share == pytest.approx(30 * 66.875e6 / 6e9)


@pytest.mark.parametrize(("piece", "in_a_step"), [(512, 300), (100, 100)])
def test_reading_does_them_for_each_token_of_a_piece(piece: int, in_a_step: int) -> None:
    _, reading = roofline_of("m", WEIGHTS, COSTS, RATES, 2e10, piece).phases
    assert reading.operations_per_byte == pytest.approx(200e6 * in_a_step / 66.875e6)
    assert reading.operations_per_s == pytest.approx(100 * 200e6)
    assert reading.possible_operations_per_s == 4e10 and reading.share == pytest.approx(0.5)


def test_the_roofs_meet_where_memory_and_arithmetic_take_as_long() -> None:
    roofline = roofline_of("m", WEIGHTS, COSTS, RATES, 3e9, 512)
    assert roofline.ridge == 1.0
    assert roofline.possible(0.5) == 3e9 and roofline.possible(2.0) == 6e9
