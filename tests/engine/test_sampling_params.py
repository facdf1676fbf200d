"""What a generation may be asked for; values may come from files and from other programs."""

from typing import Any

import pytest

from engine.errors import InvalidParams
from engine.sampling_params import SamplingParams, with_changes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", None),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", -0.1),
        ("top_k", 1.5),
        ("max_tokens", 10**400),
        ("max_tokens", 0),
        ("seed", 1.5),
        ("seed", "1"),
        ("seed", -1),
        ("seed", 2**64),
        ("stop", "END"),
        ("stop", 5),
        ("stop", [5]),
        ("stop", [""]),
        ("ignore_eos", 1),
        ("mood", 1),
    ],
)
def test_what_is_not_possible_is_one_sentence(name: str, value: Any) -> None:
    with pytest.raises(InvalidParams, match=r"^[^\n]{1,120}\.$"):
        with_changes(SamplingParams(), {name: value})


def test_what_is_possible_is_taken() -> None:
    changes = {"temperature": 1, "seed": 2**64 - 1, "stop": ["END"], "max_tokens": 5}
    params = with_changes(SamplingParams(), changes)
    assert (params.temperature, params.seed) == (1, 2**64 - 1)
    assert (params.stop, params.max_tokens) == (("END",), 5)
