"""The sampling controls as options of a command, in the groups that its help shows."""

import argparse
from collections.abc import MutableMapping
from dataclasses import fields
from typing import Any

from engine.sampling.checks import BAN
from engine.sampling.controls import CONTROLS, LLAMA_CPP_ORDER, ORDERS, Control, Group
from engine.sampling_params import PRESETS, SamplingParams

BANS = "what may not come"


def add_sampling(parser: argparse.ArgumentParser) -> None:
    given = ", ".join(PRESETS)
    parser.add_argument(
        "--preset", metavar="NAME", help=f"{given}, model's own, or one that was saved"
    )
    groups = {group: parser.add_argument_group(group.value) for group in Group}
    for control in CONTROLS:
        groups[control.group].add_argument(
            _option(control.name),
            dest=control.name,
            type=int if control.is_whole else float,
            metavar="N",
            help=_help(control),
        )
    groups[Group.CHANCE].add_argument(
        "--seed", type=int, metavar="N", help="the same one gives the same answer; 0 to 2^64 - 1"
    )
    groups[Group.FILTERS].add_argument(
        "--sampler-order",
        type=_order,
        metavar="NAMES",
        help=f"{', '.join(ORDERS)}, or samplers with commas between them, of which those that are"
        f" left out do not run: {','.join(LLAMA_CPP_ORDER)}",
    )
    groups[Group.REPETITION].add_argument(
        "--dry-breaker",
        dest="dry_breakers",
        action="append",
        metavar="TEXT",
        help="DRY sees no repetition across it; several may be given, instead of line break, colon,"
        " quotation mark and asterisk",
    )
    groups[Group.LENGTH].add_argument(
        "--stop", action="append", metavar="TEXT", help="end before this text"
    )
    bans = parser.add_argument_group(BANS)
    bans.add_argument(
        "--ban",
        dest="banned_phrases",
        action="append",
        metavar="TEXT",
        help="this text never comes; several may be given",
    )
    bans.add_argument(
        "--logit-bias",
        action="append",
        type=_bias,
        metavar="ID=BIAS",
        help=f"add to the logit of a token, {BAN:g} to {-BAN:g}; {BAN:g} bans it",
    )


def take_sampling(values: MutableMapping[str, Any]) -> dict[str, Any]:
    """The controls that were given; takes them out of `values`."""
    names = {field.name for field in fields(SamplingParams)}
    return {name: values.pop(name) for name in names & values.keys()}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _help(control: Control) -> str:
    default = getattr(SamplingParams(), control.name)
    scope = f"{control.low:,.10g} to {control.high:,.10g}, default {default:,.10g}"
    return f"{control.summary} ({scope})"


def _order(text: str) -> str | list[str]:
    return text if text in ORDERS else [name.strip() for name in text.split(",")]


def _bias(text: str) -> tuple[int, float]:
    token_id, _, bias = text.partition("=")
    try:
        # What is not possible is said where all params are checked.
        return int(token_id), float(bias)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no ID=BIAS, such as 1234=-5") from None
