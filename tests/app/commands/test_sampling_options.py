"""Every sampling control is an option, and means what the engine's control means."""

import argparse
import json
from dataclasses import asdict, fields

import pytest

from app.cli import main
from app.commands.arguments import make_parser
from app.commands.given import options_of
from app.commands.options import Options
from engine.sampling.controls import CONTROLS, ORDERS
from engine.sampling_params import SamplingParams

SWITCHES = {"ignore_eos", "loop_guard"}
"""Of use to programs and benchmarks only."""


def params_of(*arguments: str) -> SamplingParams:
    options = options_of(make_parser().parse_args(["generate", "x", *arguments]))
    # As a running app is told of it.
    told = Options.from_json(json.loads(json.dumps(asdict(options))))
    return told.params(SamplingParams())


def test_every_control_is_an_option_with_its_range_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for control in CONTROLS:
        assert f"--{control.name.replace('_', '-')} N" in shown
        assert control.summary in shown
        assert f"({control.low:,.10g} to {control.high:,.10g}, default" in shown


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_an_option_sets_its_control(control: object) -> None:
    name, high = control.name, control.high
    more = () if name == "max_tokens" else ("--max-tokens", "1000000")
    params = params_of(f"--{name.replace('_', '-')}", f"{high:.10g}", *more)
    assert getattr(params, name) == high


def test_texts_pairs_and_orders_arrive_through_a_running_app() -> None:
    params = params_of(
        *("--stop", "END", "--ban", "as an AI", "--ban", "sorry", "--dry-breaker", "\n"),
        *("--logit-bias", "5=-inf", "--logit-bias", "6=2.5", "--seed", "18446744073709551615"),
        *("--sampler-order", "temperature, top_k", "--presence-penalty", "-0.5"),
    )
    assert params.stop == ("END",)
    assert params.banned_phrases == ("as an AI", "sorry")
    assert params.dry_breakers == ("\n",)
    assert params.logit_bias == ((5, -100.0), (6, 2.5))
    assert params.seed == 2**64 - 1
    assert params.sampler_order == ("temperature", "top_k")
    assert params.presence_penalty == -0.5


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_may_be_named(name: str) -> None:
    assert params_of("--sampler-order", name).sampler_order == ORDERS[name]


def test_no_field_of_the_params_is_forgotten() -> None:
    known = {action.dest for action in _generate()._actions}
    assert {field.name for field in fields(SamplingParams)} - known == SWITCHES


def _generate() -> argparse.ArgumentParser:
    (commands,) = make_parser()._subparsers._group_actions
    return commands.choices["generate"]


@pytest.mark.parametrize("given", [["--logit-bias", "5"], ["--logit-bias", "x=1"], ["--n", "0"]])
def test_what_is_formed_wrongly_is_wrong_use(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["generate", "x", *given])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
