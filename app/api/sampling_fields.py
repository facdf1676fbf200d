"""The sampling controls in the fields of a request: OpenAI's names, llama.cpp's and vLLM's."""

from collections.abc import Mapping
from typing import Any

from engine.errors import InvalidParams, UsageError
from engine.sampling.checks import BAN
from engine.sampling.controls import CONTROLS

# Our names, by the name that other programs send.
NUMBERS: Mapping[str, str] = {
    **{control.name: control.name for control in CONTROLS},
    "seed": "seed",
    "repeat_penalty": "repetition_penalty",
    "repeat_last_n": "penalty_window",
    "dry_penalty_last_n": "dry_window",
    "max_completion_tokens": "max_tokens",
    "n_predict": "max_tokens",
}
TEXTS: Mapping[str, str] = {
    "stop": "stop",
    "dry_breakers": "dry_breakers",
    "dry_sequence_breakers": "dry_breakers",
    "banned_phrases": "banned_phrases",
    "bad_words": "banned_phrases",
}
OTHERS = frozenset({"logit_bias", "samplers", "sampler_order", "ignore_eos"})
FIELDS = frozenset({*NUMBERS, *TEXTS, *OTHERS})

WHOLE = frozenset({"seed", *(control.name for control in CONTROLS if control.is_whole)})
# What llama.cpp means by -1, by our name: off, all of it, or by chance.
MINUS_ONE: Mapping[str, Any] = {
    "top_k": 0,
    "top_n_sigma": 0.0,
    "adaptive_target": 0.0,
    "penalty_window": 1_000_000,
    "dry_window": 1_000_000,
    "max_tokens": 1_000_000,
    "seed": None,
}

LLAMA_CPP_SAMPLERS: Mapping[str, str] = {"typ_p": "typical_p"}
# llama.cpp sorts these with the others; here they have their place, which is first in its own
# order, too. One that is left out is off.
FIRST: Mapping[str, Mapping[str, float]] = {
    "penalties": {
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    },
    "dry": {"dry_multiplier": 0.0},
}


def read_sampling(body: Mapping[str, Any]) -> dict[str, Any]:
    """The controls that a body sets, by our names. Raises UsageError or InvalidParams."""
    changes: dict[str, Any] = {}
    for name, value in body.items():
        if value is None or name not in FIELDS:
            continue
        if name in NUMBERS:
            changes[NUMBERS[name]] = _number(name, NUMBERS[name], value)
        elif name in TEXTS:
            changes[TEXTS[name]] = _texts(name, value)
        elif name == "logit_bias":
            changes[name] = _biases(value)
        elif name == "sampler_order":
            changes[name] = value
        elif name == "ignore_eos":
            if not isinstance(value, bool):
                raise UsageError("The field 'ignore_eos' must be true or false.")
            changes[name] = value
    if body.get("samplers") is not None:
        changes |= _samplers(body["samplers"])
    return changes


def _number(name: str, ours: str, value: object) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidParams(f"{name} must be a number.")
    if value == -1 and ours in MINUS_ONE:
        found: int | float | None = MINUS_ONE[ours]
        return found
    try:
        if ours not in WHOLE:
            return float(value)
        if value == int(value):
            return int(value)
    except (OverflowError, ValueError):
        pass  # neither finite nor of a size that any control takes
    kind = "whole number" if ours in WHOLE else "number"
    raise InvalidParams(f"{name} must be a {kind} in its range, got {str(value)[:20]}.")


def _texts(name: str, value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"The field {name!r} must be a text or a list of texts.")
    return tuple(texts)


def _biases(value: object) -> object:
    """llama.cpp's pairs may say false for a ban."""
    if not isinstance(value, list):
        return value
    return [
        [pair[0], BAN if pair[1] is False else pair[1]]
        if isinstance(pair, list) and len(pair) == 2
        else pair
        for pair in value
    ]


def _samplers(value: object) -> dict[str, Any]:
    """llama.cpp's list of everything that runs."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError("The field 'samplers' must be a list of names.")
    changes: dict[str, Any] = {}
    order = [LLAMA_CPP_SAMPLERS.get(name, name) for name in value if name != "adaptive_p"]
    for first, off in FIRST.items():
        if first not in order:
            changes |= off
    leading = [name for name in order if name in FIRST]
    if order[: len(leading)] != leading:
        raise UsageError("Of 'samplers', penalties and dry run before the others: put them first.")
    if "adaptive_p" in value[:-1]:
        raise UsageError("Of 'samplers', adaptive_p is the last to run: put it last.")
    if "adaptive_p" not in value:
        changes["adaptive_target"] = 0.0
    changes["sampler_order"] = order[len(leading) :]
    return changes
