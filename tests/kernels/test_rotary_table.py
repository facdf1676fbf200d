"""Every scaling of rotary positions is that of transformers, where that is installed."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kernels.rotary_table import RotaryScaling, attention_factor, rotary_frequencies, rotary_table

DIM, BASE, TRAINED = 32, 10000.0, 64
FACTORS = [1 + index / 7 for index in range(DIM // 2)]


def theirs(kind: str, max_positions: int, **parameters: Any) -> tuple[Tensor, float]:
    utilities = pytest.importorskip("transformers.modeling_rope_utils")
    from transformers import LlamaConfig

    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        max_position_embeddings=parameters.pop("max_position_embeddings", TRAINED),
        rope_parameters={"rope_type": kind, "rope_theta": BASE, **parameters},
    )
    frequencies, factor = utilities.ROPE_INIT_FUNCTIONS[kind](
        config, torch.device("cpu"), seq_len=max_positions
    )
    return frequencies, factor


ORIGINAL = {"original_max_position_embeddings": TRAINED}
CASES = [
    pytest.param({"factor": 4.0}, {"factor": 4.0}, "linear", id="linear"),
    pytest.param({"factor": 3.0}, {"factor": 3.0}, "dynamic", id="dynamic"),
    pytest.param({"factor": 4.0, **ORIGINAL}, {"factor": 4.0}, "yarn", id="yarn"),
    pytest.param(
        {
            "factor": 8.0,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "mscale": 0.7,
            "mscale_all_dim": 1.3,
            **ORIGINAL,
        },
        {
            "factor": 8.0,
            "beta_fast": 16.0,
            "beta_slow": 2.0,
            "mscale": 0.7,
            "mscale_all_dim": 1.3,
        },
        "yarn",
        id="yarn-of-deepseek",
    ),
    pytest.param(
        {"factor": 4.0, "truncate": False, "attention_factor": 1.5, **ORIGINAL},
        {"factor": 4.0, "truncates": False, "attention_factor": 1.5},
        "yarn",
        id="yarn-untruncated",
    ),
    pytest.param(
        {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            **ORIGINAL,
        },
        {"factor": 8.0, "low_frequency_factor": 1.0, "high_frequency_factor": 4.0},
        "llama3",
        id="llama3",
    ),
    pytest.param(
        {
            "factor": 4.0,
            "short_factor": FACTORS,
            "long_factor": FACTORS[::-1],
            **ORIGINAL,
        },
        {"factor": 4.0, "short_factors": tuple(FACTORS), "long_factors": tuple(FACTORS[::-1])},
        "longrope",
        id="longrope",
    ),
    pytest.param(
        {"factor": 2.0, "partial_rotary_factor": 0.25},
        {"factor": 2.0, "rotated": 0.25},
        "proportional",
        id="proportional",
    ),
]


@pytest.mark.parametrize("max_positions", [TRAINED // 2, 4 * TRAINED], ids=["short", "long"])
@pytest.mark.parametrize(("parameters", "options", "kind"), CASES)
def test_a_scaling_is_that_of_transformers(
    parameters: dict[str, Any], options: dict[str, Any], kind: Any, max_positions: int
) -> None:
    needs_original = kind in ("dynamic", "yarn", "longrope", "llama3")
    scaling = RotaryScaling(
        kind=kind, original_positions=TRAINED if needs_original else 0, **options
    )
    frequencies, factor = theirs(kind, max_positions, **parameters)
    ours = rotary_frequencies(DIM, BASE, max_positions, scaling)
    torch.testing.assert_close(ours.float(), frequencies, rtol=2e-6, atol=1e-9)
    assert attention_factor(max_positions, scaling) == pytest.approx(factor, rel=1e-12)


def test_longrope_without_a_factor_takes_how_far_the_context_was_stretched() -> None:
    scaling = RotaryScaling(
        kind="longrope",
        original_positions=TRAINED,
        short_factors=tuple(FACTORS),
        long_factors=tuple(FACTORS),
    )
    expected = math.sqrt(1 + math.log(4) / math.log(TRAINED))
    assert attention_factor(4 * TRAINED, scaling) == pytest.approx(expected)
    assert attention_factor(TRAINED // 2, scaling) == 1.0


def test_the_table_holds_cosines_and_sines_of_every_position() -> None:
    table = rotary_table(4, 100.0, 3)
    assert table.shape == (3, 2, 2) and table.dtype == torch.float32
    for position in range(3):
        for index, frequency in enumerate((1.0, 0.1)):
            assert table[position, 0, index] == pytest.approx(math.cos(position * frequency))
            assert table[position, 1, index] == pytest.approx(math.sin(position * frequency))


def test_an_angle_far_out_is_right_to_the_last_digit() -> None:
    table = rotary_table(64, 10000.0, 100_001)
    assert table[-1, 1, 1].item() == pytest.approx(math.sin(100_000 * 10000 ** (-1 / 32)), abs=1e-7)


def test_divisors_of_a_file_divide_frequencies() -> None:
    scaling = RotaryScaling(divisors=tuple(FACTORS))
    plain = rotary_frequencies(DIM, BASE, 10, RotaryScaling())
    divided = rotary_frequencies(DIM, BASE, 10, scaling)
    torch.testing.assert_close(divided * torch.tensor(FACTORS, dtype=torch.float64), plain)


def test_the_attention_factor_is_in_the_table() -> None:
    scaling = RotaryScaling(kind="yarn", factor=4.0, original_positions=64, attention_factor=2.0)
    assert rotary_table(8, 100.0, 1, scaling)[0, 0, 0] == 2.0


def test_what_makes_no_table_is_named() -> None:
    with pytest.raises(ValueError, match="even count"):
        rotary_table(7, 100.0, 4)
    with pytest.raises(ValueError, match="yarn needs its original positions"):
        RotaryScaling(kind="yarn", factor=2.0)
    with pytest.raises(ValueError, match="short and long factors"):
        RotaryScaling(kind="longrope", original_positions=64)
    with pytest.raises(ValueError, match="16 rotary factors are needed, and there are 3"):
        rotary_table(32, 100.0, 4, RotaryScaling(divisors=(1.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match="above 0"):
        RotaryScaling(factor=0.0)
    with pytest.raises(ValueError, match="above the low one"):
        RotaryScaling(kind="llama3", original_positions=64, high_frequency_factor=1.0)
