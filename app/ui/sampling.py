"""The sampling controls as the page shows them: groups, names for people, and what is refused.

The fields are drawn by the page's script from `catalogue`, and come back as one JSON object that
holds what is not as `SamplingParams` has it by itself.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import InvalidParams
from engine.sampling.controls import CONTROLS, ORDERS, Control, Group
from engine.sampling_params import SamplingParams, changes_between, with_changes

BASICS = "temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"
FLAGS = "ignore_eos", "loop_guard"
TEXTS = "stop", "banned_phrases", "dry_breakers"

LABELS: Mapping[str, str] = {
    "temperature": "Temperature",
    "dynatemp_range": "Dynamic temperature",
    "dynatemp_exponent": "Its exponent",
    "top_k": "Top-k",
    "top_p": "Top-p",
    "min_p": "Min-p",
    "typical_p": "Typical",
    "tfs_z": "Tail-free",
    "top_a": "Top-a",
    "epsilon_cutoff": "Epsilon cutoff",
    "eta_cutoff": "Eta cutoff",
    "top_n_sigma": "Top-n-sigma",
    "xtc_probability": "Exclude top choices",
    "xtc_threshold": "Its threshold",
    "mirostat": "Mirostat",
    "mirostat_tau": "Its target",
    "mirostat_eta": "Its rate",
    "adaptive_target": "Adaptive-p",
    "adaptive_decay": "Its memory",
    "repetition_penalty": "Repetition penalty",
    "presence_penalty": "Presence penalty",
    "frequency_penalty": "Frequency penalty",
    "penalty_window": "Penalty window",
    "no_repeat_ngram_size": "No-repeat n-gram",
    "dry_multiplier": "DRY",
    "dry_base": "DRY base",
    "dry_allowed_length": "DRY allowance",
    "dry_window": "DRY window",
    "min_tokens": "Shortest answer",
    "max_tokens": "Longest answer",
    "xtc": "Exclude top choices",
    "seed": "Seed",
    "stop": "Stop texts",
    "banned_phrases": "Banned phrases",
    "dry_breakers": "DRY breakers",
    "logit_bias": "Logit bias",
    "ignore_eos": "Go on after an end token",
    "loop_guard": "End answers that go in circles",
}
HELP: Mapping[str, str] = {
    "seed": "the same one gives the same answer; empty is by chance",
    "stop": "the answer ends before one of these; one in each line, \\n for a line break",
    "banned_phrases": "these never come; one in each line, \\n for a line break",
    "dry_breakers": "DRY sees no repetition across these; one in each line, \\n for a line break",
    "logit_bias": "a token's id, =, and what is added to its logit: 1234=-5; -100 bans; one in"
    " each line",
    "ignore_eos": "it writes up to the longest answer",
    "loop_guard": "a small model may repeat itself without end",
}
# Where the slider of a control with a long range ends; the number beside it reaches as far as the
# engine does.
REACH: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_k": (0, 200),
    "max_tokens": (1, 8192),
    "top_n_sigma": (0, 5),
    "mirostat_tau": (0, 10),
    "repetition_penalty": (0.8, 2.0),
    "penalty_window": (0, 4096),
    "no_repeat_ngram_size": (0, 20),
    "dry_multiplier": (0, 5),
    "dry_base": (1, 4),
    "dry_allowed_length": (1, 20),
}
LONGEST_SEED = 20
ALL = "sampling"
"""What a fault is said of that lies in no control alone."""


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    sentence: str


def catalogue() -> dict[str, Any]:
    """All controls in their groups, for the page's script."""
    controls = {control.name: control for control in CONTROLS}
    basics = [_seed() if name == "seed" else _number(controls[name]) for name in BASICS]
    groups = [{"title": "Basics", "is_open": True, "controls": basics}]
    for group in Group:
        more = [_number(each) for each in CONTROLS if each.group is group and _is_more(each)]
        if group is Group.LENGTH:
            more += [_other("stop", "texts"), *(_other(name, "flag") for name in FLAGS)]
        elif group is Group.REPETITION:
            more.append(_other("dry_breakers", "texts"))
        groups.append({"title": _capital(group.value), "is_open": False, "controls": more})
    bans = [_other("banned_phrases", "texts"), _other("logit_bias", "biases")]
    groups.append({"title": "What may not come", "is_open": False, "controls": bans})
    order = [_other("sampler_order", "order")]
    groups.append({"title": "Order of the steps", "is_open": False, "controls": order})
    steps = ORDERS["llama.cpp"]
    return {
        "groups": groups,
        "orders": {name: list(order) for name, order in ORDERS.items()},
        "steps": {name: LABELS[name] for name in steps},
    }


def read_changes(text: str) -> dict[str, Any]:
    """What the page's script has written. Raises InvalidParams."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidParams("The sampling controls came damaged from the page: reload it.")
    seed = found.get("seed")
    if isinstance(seed, str) and seed.isdecimal() and len(seed) <= LONGEST_SEED:
        found["seed"] = int(seed)
    return found


def write_changes(params: SamplingParams) -> str:
    """What `read_changes` takes, for the page's script, to which large numbers are not exact."""
    changes = changes_between(SamplingParams(), params)
    if changes.get("seed") is not None:
        changes["seed"] = str(changes["seed"])
    return json.dumps(changes)


def faults_of(changes: Mapping[str, Any]) -> list[Fault]:
    """Everything that stands in the way of these changes: of each control by itself, and if there
    is nothing of that kind, of all together."""
    faults = [each for name, value in changes.items() if (each := _fault(name, {name: value}))]
    if not faults and (together := _fault(ALL, changes)):
        first = next((name for name in changes if together.sentence.startswith(name)), ALL)
        faults = [Fault(first, together.sentence)]
    return faults


def _fault(name: str, changes: Mapping[str, Any]) -> Fault | None:
    # Of two that depend on each other only one may be set yet.
    loose = {"max_tokens": 1_000_000} if name == "min_tokens" else {}
    try:
        with_changes(SamplingParams(), {**loose, **changes})
    except InvalidParams as error:
        return Fault(name, str(error))
    return None


def _is_more(control: Control) -> bool:
    return control.name not in BASICS


def _number(control: Control) -> dict[str, Any]:
    low, high = REACH.get(control.name, (control.low, control.high))
    has_slider = high - low <= 10 or control.name in REACH
    fine = 0.01 if high - low <= 2 else 0.05
    return {
        "name": control.name,
        "kind": "number",
        "label": LABELS[control.name],
        "help": _capital(control.summary),
        "low": control.low,
        "high": control.high,
        "default": getattr(SamplingParams(), control.name),
        "step": 1 if control.is_whole else fine,
        "slider": [low, high] if has_slider else None,
    }


def _seed() -> dict[str, Any]:
    return _other("seed", "exact") | {"low": 0, "high": "2^64 - 1"}


def _other(name: str, kind: str) -> dict[str, Any]:
    default = getattr(SamplingParams(), name)
    return {
        "name": name,
        "kind": kind,
        "label": LABELS.get(name, "Order"),
        "help": _capital(HELP.get(name, "")),
        "default": list(default) if isinstance(default, tuple) else default,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def names(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """Of every control in these groups."""
    return [control["name"] for group in groups for control in group["controls"]]
