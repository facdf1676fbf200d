"""The table of controls agrees with the params that it describes, and the README with both."""

from dataclasses import fields
from pathlib import Path

import pytest

from engine.sampling.controls import CONTROLS
from engine.sampling_params import SamplingParams

README = Path(__file__).resolve().parents[3] / "README.md"
OTHERS = {
    "dry_breakers",
    "logit_bias",
    "banned_phrases",
    "sampler_order",
    "seed",
    "stop",
    "ignore_eos",
    "loop_guard",
}


def test_every_number_of_the_params_is_a_control() -> None:
    names = [control.name for control in CONTROLS]
    assert len(set(names)) == len(names)
    assert {field.name for field in fields(SamplingParams)} == {*names, *OTHERS}


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_a_default_is_in_its_range_and_of_its_kind(control: object) -> None:
    default = getattr(SamplingParams(), control.name)
    assert control.low <= default <= control.high
    assert type(default) is (int if control.is_whole else float)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_the_readme_has_its_name_range_default_and_meaning(control: object) -> None:
    default = getattr(SamplingParams(), control.name)
    row = (
        f"| `{control.name}` | {control.low:,.10g} to {control.high:,.10g} | {default:,.10g}"
        f" | {control.summary} |"
    )
    assert row in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_the_params_say_where_it_is_from(control: object) -> None:
    assert f"`{control.name}`" in (SamplingParams.__doc__ or "")
