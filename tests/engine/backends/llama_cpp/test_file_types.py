"""What a file would take as another type, before it is made."""

from pathlib import Path

import pytest

from engine.backends.llama_cpp.file_types import FILE_TYPES, is_quantized, size_as
from engine.backends.llama_cpp.gguf_header import Tensor
from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.matrix_product import TYPES as KINDS
from engine.backends.llama_cpp.weights import Weights, read_weights


def test_the_numbers_are_those_of_llama_cpp() -> None:
    for name, (number, _) in FILE_TYPES.items():
        kind = "ALL_F32" if name == "F32" else f"MOSTLY_{name}"
        assert getattr(bindings, f"LLAMA_FTYPE_{kind}") == number


def test_rounded_matrices_make_a_file_quantised_and_norms_do_not(starter: Path) -> None:
    assert is_quantized(read_weights(starter))
    norm = Tensor("output_norm.weight", (8,), KINDS["F32"])
    assert not is_quantized(Weights((Tensor("a.weight", (8, 8), KINDS["BF16"]), norm)))


@pytest.mark.parametrize(("small", "large"), [("Q4_0", "Q8_0"), ("Q8_0", "F16"), ("F16", "F32")])
def test_more_bits_take_more_room(starter: Path, small: str, large: str) -> None:
    weights = read_weights(starter)
    assert size_as(weights, small) < size_as(weights, large)
