"""The sampling controls under the names that other programs have for them."""

import json
from typing import Any

import pytest

from app.api.sampling_fields import read_sampling
from engine.errors import InvalidParams, UsageError
from engine.sampling.controls import CONTROLS, ORDERS
from engine.sampling_params import SamplingParams, with_changes

LLAMA_CPP: dict[str, Any] = {
    "temperature": 0.9,
    "dynatemp_range": 0.2,
    "dynatemp_exponent": 1.5,
    "top_k": 30,
    "top_p": 0.9,
    "min_p": 0.02,
    "top_n_sigma": 1.5,
    "xtc_probability": 0.3,
    "xtc_threshold": 0.2,
    "typical_p": 0.8,
    "repeat_last_n": 33,
    "repeat_penalty": 1.2,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "dry_multiplier": 0.8,
    "dry_base": 1.5,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 99,
    "dry_sequence_breakers": ["\n"],
    "mirostat": 2,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.2,
    "adaptive_decay": 0.5,
    "seed": 5,
    "n_predict": 77,
    "logit_bias": [[15, 2.5], [16, False]],
    "stop": ["END"],
    "ignore_eos": True,
}


def params_of(**fields: Any) -> SamplingParams:
    # As it comes over the wire.
    return with_changes(SamplingParams(), read_sampling(json.loads(json.dumps(fields))))


def test_llama_cpps_names_arrive_under_ours() -> None:
    assert params_of(**LLAMA_CPP) == SamplingParams(
        temperature=0.9,
        dynatemp_range=0.2,
        dynatemp_exponent=1.5,
        top_k=30,
        top_p=0.9,
        min_p=0.02,
        top_n_sigma=1.5,
        xtc_probability=0.3,
        xtc_threshold=0.2,
        typical_p=0.8,
        penalty_window=33,
        repetition_penalty=1.2,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        dry_multiplier=0.8,
        dry_base=1.5,
        dry_allowed_length=3,
        dry_window=99,
        dry_breakers=("\n",),
        mirostat=2,
        mirostat_tau=4.0,
        mirostat_eta=0.2,
        adaptive_decay=0.5,
        seed=5,
        max_tokens=77,
        logit_bias=((15, 2.5), (16, -100.0)),
        stop=("END",),
        ignore_eos=True,
    )


def test_openais_and_vllms_names_arrive_under_ours() -> None:
    params = params_of(
        max_completion_tokens=9,
        min_tokens=2,
        logit_bias={"7": -100},
        bad_words=["never"],
        stop="END",
        temperature=0,
    )
    assert (params.max_tokens, params.min_tokens, params.temperature) == (9, 2, 0.0)
    assert (params.logit_bias, params.banned_phrases) == (((7, -100),), ("never",))
    assert params.stop == ("END",)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_every_control_is_taken_by_our_name_at_both_ends_of_its_range(control: Any) -> None:
    for value in (control.low, control.high):
        more = {"max_tokens": 1_000_000} if control.name != "max_tokens" else {}
        assert getattr(params_of(**more | {control.name: value}), control.name) == value


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_beyond_its_range_it_is_refused_with_the_range(control: Any) -> None:
    for value in (control.low - 3, control.high + 1):
        both = f"between {control.low:,.10g} and {control.high:,.10g}"
        with pytest.raises(InvalidParams, match=both):
            params_of(**{control.name: value})


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [
        ("top_k", "top_k", 0),
        ("top_n_sigma", "top_n_sigma", 0.0),
        ("repeat_last_n", "penalty_window", 1_000_000),
        ("dry_penalty_last_n", "dry_window", 1_000_000),
        ("n_predict", "max_tokens", 1_000_000),
        ("adaptive_target", "adaptive_target", 0.0),
        ("seed", "seed", None),
    ],
)
def test_minus_one_means_what_it_means_in_llama_cpp(field: str, name: str, value: Any) -> None:
    assert getattr(params_of(**{field: -1}), name) == value


def test_llama_cpps_list_of_samplers_is_the_order_and_turns_the_others_off() -> None:
    fields = {"repeat_penalty": 1.3, "dry_multiplier": 1.0, "adaptive_target": 0.3}
    params = params_of(**fields, samplers=["dry", "top_k", "typ_p", "temperature"])
    assert params.sampler_order == ("top_k", "typical_p", "temperature")
    assert (params.repetition_penalty, params.dry_multiplier) == (1.0, 1.0)
    assert params.adaptive_target == 0.0
    params = params_of(**fields, samplers=["penalties", "dry", "min_p", "adaptive_p"])
    assert (params.repetition_penalty, params.adaptive_target) == (1.3, 0.3)


def test_an_order_may_be_named() -> None:
    assert params_of(sampler_order="vllm").sampler_order == ORDERS["vllm"]
    assert params_of(sampler_order=["top_k"]).sampler_order == ("top_k",)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"samplers": ["top_k", "penalties"]}, "put them first"),
        ({"samplers": ["adaptive_p", "top_k"]}, "put it last"),
        ({"samplers": ["infill"]}, "sampler_order has no 'infill'"),
        ({"samplers": ["top_k", "top_k"]}, "has top_k twice"),
        ({"samplers": "kpm"}, "must be a list of names"),
        ({"sampler_order": "nobody's"}, "There is no order"),
        ({"sampler_order": 5}, "must be a list"),
        ({"logit_bias": [["Hello", -1]]}, "must have ids of tokens"),
        ({"logit_bias": {"x": 1}}, "must have ids of tokens"),
        ({"logit_bias": {"5": 101}}, "between -100 and 100"),
        ({"logit_bias": {"5": "x"}}, "must be a number"),
        ({"logit_bias": 5}, "must be an object"),
        ({"logit_bias": [[5, 1], [5, 2]]}, "a token twice"),
        ({"banned_phrases": [""]}, "must not be empty"),
        ({"banned_phrases": ["\ud83d"]}, "whole characters"),
        ({"banned_phrases": ["x"] * 101}, "may have 100 texts"),
        ({"banned_phrases": ["x" * 401]}, "may have 400 characters"),
        ({"mirostat": 1.5}, "whole number"),
        ({"mirostat": 2, "adaptive_target": 0.5}, "two ways to draw"),
        ({"min_tokens": 9, "max_tokens": 8}, "must not be above max_tokens"),
    ],
    ids=str,
)
def test_what_is_not_possible_is_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises((InvalidParams, UsageError), match=sentence) as raised:
        params_of(**fields)
    assert str(raised.value).count(". ") == 0 and len(str(raised.value)) < 200
