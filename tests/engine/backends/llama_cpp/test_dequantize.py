"""Weights of any type as numbers: ggml's functions beside those of the gguf package."""

import gguf
import numpy as np
import pytest

from engine.backends.llama_cpp.dequantize import to_float
from engine.errors import ModelUnsupported

TYPES = ["Q5_1", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "Q4_0", "Q6_K", "F16"]
WIDTH = 512


@pytest.mark.parametrize("name", TYPES)
def test_numbers_are_those_of_the_gguf_package(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, (3, WIDTH // numbers, size), np.uint8)
    if name == "F16":
        data = rng.standard_normal((3, WIDTH)).astype(np.float16).view(np.uint8).reshape(data.shape)
    else:
        # Scales that are numbers: at the end of a block of these two, else at its beginning.
        at = {"Q2_K": [80, 82], "Q3_K": [108], "Q6_K": [208]}.get(name, [0])
        at += [2] if name == "Q5_1" else []
        for place in at:
            scale = rng.uniform(0.01, 0.1, (3, WIDTH // numbers)).astype(np.float16)
            data[:, :, place : place + 2] = scale[..., None].view(np.uint8)
    flat = np.ascontiguousarray(data.reshape(3, -1))
    found = to_float(int(kind), flat.reshape(-1), WIDTH)
    expected = gguf.quants.dequantize(flat, kind).reshape(3, WIDTH)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_rows_that_are_no_whole_blocks_are_refused() -> None:
    kind = int(gguf.GGMLQuantizationType.Q2_K)
    with pytest.raises(ModelUnsupported, match="rows of 100"):
        to_float(kind, np.zeros(84, np.uint8), 100)
