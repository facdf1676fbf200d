"""The fields of the settings: every control is there once, and what is wrong is said at its own."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from app.ui import sampling
from app.ui.sampling import ALL, Fault, catalogue, faults_of, read_changes, write_changes
from engine.errors import InvalidParams
from engine.sampling.controls import CONTROLS
from engine.sampling_params import SamplingParams, with_changes

SCRIPT = Path(sampling.__file__).parent / "static" / "sampling.js"


def test_every_control_has_one_field() -> None:
    assert sorted(sampling.names(catalogue()["groups"])) == sorted(
        field.name for field in fields(SamplingParams)
    )


def test_a_field_tells_the_range_the_default_and_what_it_does() -> None:
    shown = {each["name"]: each for group in catalogue()["groups"] for each in group["controls"]}
    for control in CONTROLS:
        field = shown[control.name]
        assert (field["low"], field["high"]) == (control.low, control.high)
        assert field["default"] == getattr(SamplingParams(), control.name)
        assert field["help"].lower() == control.summary.lower()
        if field["slider"]:
            low, high = field["slider"]
            assert control.low <= low <= field["default"] <= high <= control.high


def test_the_script_draws_every_kind_of_field() -> None:
    kinds = {each["kind"] for group in catalogue()["groups"] for each in group["controls"]}
    drawn = re.search(r"const KINDS = {(.*?)};", SCRIPT.read_text(), re.DOTALL)
    assert drawn is not None
    assert kinds == set(re.findall(r"^    (\w+):", drawn[1], re.MULTILINE))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"temperature": 9, "top_p": 2, "top_k": 3}, ["temperature", "top_p"]),
        ({"temperature": "?"}, ["temperature"]),
        ({"top_k": 2.5}, ["top_k"]),
        ({"min_tokens": 2000}, ["min_tokens"]),
        ({"min_tokens": 2000, "max_tokens": 3000}, []),
        ({"mirostat": 1, "adaptive_target": 0.5}, ["mirostat"]),
        ({"sampler_order": ["top_k", "top_k"]}, ["sampler_order"]),
        ({"logit_bias": [["x", 1]]}, ["logit_bias"]),
        ({"logit_bias": [[3, ""]]}, ["logit_bias"]),
        ({"seed": -1}, ["seed"]),
        ({"heat": 1}, ["heat"]),
    ],
)
def test_a_fault_is_said_of_its_control(changes: dict[str, object], names: list[str]) -> None:
    faults = faults_of(changes)
    assert [each.name for each in faults] == names
    assert all(each.sentence.endswith(".") for each in faults)


def test_a_fault_of_no_control_is_one_of_all() -> None:
    assert Fault(ALL, "x").name == "sampling"


def test_a_seed_that_no_script_could_hold_comes_back() -> None:
    params = with_changes(SamplingParams(), {"seed": 2**64 - 1, "stop": ["\n"]})
    text = write_changes(params)
    assert json.loads(text)["seed"] == "18446744073709551615"
    assert with_changes(SamplingParams(), read_changes(text)) == params


@pytest.mark.parametrize("text", ["{", "[]", "3", "[" * 100_000])
def test_what_no_script_wrote_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams, match="reload"):
        read_changes(text)
