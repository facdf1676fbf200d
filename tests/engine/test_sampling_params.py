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
        ("top_p", 1.1),
        ("xtc_threshold", 0.6),
        ("mirostat", 3),
        ("mirostat", True),
        ("adaptive_decay", 1.0),
        ("no_repeat_ngram_size", 2.0),
        ("min_tokens", 1025),
        ("sampler_order", "top_k"),
        ("sampler_order", ["top_k", "min_p", "top_k"]),
        ("logit_bias", {"-1": 1}),
        ("logit_bias", {"1": float("nan")}),
        ("logit_bias", [[1, 1, 1]]),
        ("banned_phrases", "x"),
        ("banned_phrases", ["\ufffd"]),
        ("dry_breakers", [""]),
    ],
)
def test_what_is_not_possible_is_one_sentence(name: str, value: Any) -> None:
    with pytest.raises(InvalidParams, match=r"^[^\n]{1,120}\.$"):
        with_changes(SamplingParams(), {name: value})


def test_an_unknown_sampler_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidParams, match="no 'top_q': it is made of top_n_sigma, top_k"):
        with_changes(SamplingParams(), {"sampler_order": ["top_q"]})


def test_what_json_has_for_pairs_and_orders_is_taken() -> None:
    changes = {"logit_bias": {"5": -100, "7": 2.5}, "sampler_order": "transformers"}
    params = with_changes(SamplingParams(), changes)
    assert params.logit_bias == ((5, -100), (7, 2.5))
    assert params.sampler_order[0] == "temperature"
    again = {"logit_bias": [[5, -100], [7, 2.5]], "sampler_order": list(params.sampler_order)}
    assert with_changes(SamplingParams(), again) == params
    assert hash(params) == hash(with_changes(SamplingParams(), again))


def test_minus_infinity_bans_and_can_be_written_as_json() -> None:
    params = with_changes(SamplingParams(), {"logit_bias": {"5": float("-inf")}})
    assert params.logit_bias == ((5, -100.0),)


def test_what_is_possible_is_taken() -> None:
    changes = {"temperature": 1, "seed": 2**64 - 1, "stop": ["END"], "max_tokens": 5}
    params = with_changes(SamplingParams(), changes)
    assert (params.temperature, params.seed) == (1, 2**64 - 1)
    assert (params.stop, params.max_tokens) == (("END",), 5)
