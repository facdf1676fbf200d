"""The presets that nobody has to save: those of the app, and what a model's file recommends."""

import logging
from collections.abc import Mapping
from typing import Any

from app.presets.preset import Preset
from engine.errors import InvalidParams
from engine.sampling.controls import CONTROLS, LLAMA_CPP_ORDER
from engine.sampling_params import PRESETS, SamplingParams, changes_between, with_changes

logger = logging.getLogger(__name__)

MODELS_OWN = "Model's own"

# By llama.cpp's keys, `general.sampling.*` of a GGUF file.
NUMBERS: Mapping[str, str] = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "xtc_probability": "xtc_probability",
    "xtc_threshold": "xtc_threshold",
    "penalty_last_n": "penalty_window",
    "penalty_repeat": "repetition_penalty",
    "mirostat": "mirostat",
    "mirostat_tau": "mirostat_tau",
    "mirostat_eta": "mirostat_eta",
}
SEQUENCE = "sequence"
WHOLE = frozenset(control.name for control in CONTROLS if control.is_whole)
# What llama.cpp means by -1, and below.
MINUS_ONE: Mapping[str, int] = {"top_k": 0, "penalty_window": 1_000_000}
SAMPLERS: Mapping[str, str] = {"typ_p": "typical_p"}
# In a sequence these are steps of their own; here they have their places outside of the order.
ELSEWHERE = frozenset({"penalties", "dry", "adaptive_p", "infill"})


def app_presets() -> tuple[Preset, ...]:
    """Precise, balanced and creative."""
    return tuple(
        Preset(
            name=name.capitalize(),
            sampling=changes_between(SamplingParams(), params),
            is_given=True,
        )
        for name, params in PRESETS.items()
    )


def models_own(recommended: Mapping[str, str]) -> Preset | None:
    """What a model's file says of how to sample from it, over the app's own choices; None when it
    says nothing that can be used. `recommended`: by the last part of the key, as text."""
    sampling: dict[str, Any] = {}
    for key, text in recommended.items():
        change = _order(text) if key == SEQUENCE else _number(key, text)
        try:
            with_changes(SamplingParams(), change)
        except InvalidParams as error:
            logger.warning("The model's file recommends %s = %.40s: %s", key, text, error)
            continue
        sampling |= change
    changed = changes_between(SamplingParams(), with_changes(SamplingParams(), sampling))
    return Preset(name=MODELS_OWN, sampling=changed, is_given=True) if sampling else None


def _number(key: str, text: str) -> dict[str, Any]:
    """Empty for a key that nothing here is meant by."""
    name = NUMBERS.get(key)
    if name is None:
        return {}
    try:
        value = round(float(text), 6)
    except ValueError:
        return {name: text}
    if value < 0 and name in MINUS_ONE:
        return {name: MINUS_ONE[name]}
    return {name: int(value) if name in WHOLE and value.is_integer() else value}


def _order(text: str) -> dict[str, Any]:
    names = [SAMPLERS.get(name, name) for name in text.split(";")]
    order = [name for name in names if name not in ELSEWHERE]
    if not set(order) <= set(LLAMA_CPP_ORDER):
        return {}
    return {"sampler_order": order} if order else {}
