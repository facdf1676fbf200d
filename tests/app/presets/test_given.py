"""The presets of the app, and what a model's file recommends."""

import pytest

from app.presets.given import MODELS_OWN, app_presets, models_own
from engine.sampling_params import PRESETS, SamplingParams


def test_those_of_the_app_are_the_engines() -> None:
    assert {each.name.lower(): each.params for each in app_presets()} == dict(PRESETS)
    assert all(each.is_given for each in app_presets())


def test_a_model_without_recommendations_has_no_preset() -> None:
    assert models_own({}) is None


def test_the_recommendations_of_a_model_become_ours() -> None:
    found = {
        "temp": "0.600000",
        "top_k": "20",
        "top_p": "0.949999988079071",
        "min_p": "0.000000",
        "penalty_repeat": "1.050000",
        "penalty_last_n": "-1",
        "xtc_probability": "0.100000",
        "mirostat": "0",
    }
    own = models_own(found)
    assert own is not None and own.name == MODELS_OWN
    assert own.params == SamplingParams(
        temperature=0.6,
        top_k=20,
        top_p=0.95,
        min_p=0.0,
        repetition_penalty=1.05,
        penalty_window=1_000_000,
        xtc_probability=0.1,
    )


def test_a_model_that_recommends_what_the_app_does_anyway_still_has_its_preset() -> None:
    own = models_own({"top_k": "40"})
    assert own is not None and own.sampling == {}


def test_llama_cpps_sequence_becomes_an_order() -> None:
    own = models_own({"sequence": "penalties;dry;temperature;top_k;typ_p;top_p"})
    assert own is not None
    assert own.params.sampler_order == ("temperature", "top_k", "typical_p", "top_p")


@pytest.mark.parametrize(
    "found",
    [
        {"temp": "99"},
        {"temp": "hot"},
        {"temp": "nan"},
        {"top_k": "2.5"},
        {"sequence": "magic;top_k"},
        {"sequence": "top_k;top_k"},
        {"heat": "1"},
    ],
)
def test_what_cannot_be_used_is_passed_over(found: dict[str, str]) -> None:
    assert models_own(found) is None
    own = models_own({**found, "min_p": "0.2"})
    assert own is not None and own.params == SamplingParams(min_p=0.2)


def test_no_penalty_window_of_minus_one_is_out_of_range() -> None:
    own = models_own({"top_k": "-1"})
    assert own is not None and own.params.top_k == 0
