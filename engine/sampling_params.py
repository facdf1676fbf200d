"""The choices of one generation: how the next token is picked and when to end."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.errors import InvalidParams


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to pick the next token. Immutable, so it may be shared by threads.

    Filters run in this order: penalties, top-k, top-p, min-p, temperature.
    `temperature = 0` is greedy. `top_k = 0`, `top_p = 1` and `min_p = 0` are off; `top_p = 0` keeps
    one token. Presence and frequency penalties count generated tokens only; the
    repetition penalty also counts the prompt, over the last `penalty_window` tokens.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 256
    seed: int | None = None
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    loop_guard: bool = True

    def __post_init__(self) -> None:
        # Values come from files and from other programs, too, so their kinds are not yet known.
        for name, low, high in RANGES:
            value = getattr(self, name)
            if type(value) not in ((int,) if name in WHOLE else (int, float)):
                raise InvalidParams(f"{name} must be a {'whole ' * (name in WHOLE)}number.")
            if not low <= value <= high:
                raise InvalidParams(
                    f"{name} must be between {low:g} and {high:g}, got {str(value)[:20]}."
                )
        if self.seed is not None and (type(self.seed) is not int or not 0 <= self.seed < 2**64):
            raise InvalidParams(
                f"seed must be a whole number between 0 and 2^64 - 1, got {str(self.seed)[:20]}."
            )
        if not all(isinstance(text, str) for text in self.stop):
            raise InvalidParams("stop must be a list of texts.")
        if any(not text for text in self.stop):
            raise InvalidParams("A stop text must not be empty.")
        for name in ("ignore_eos", "loop_guard"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParams(f"{name} must be true or false.")

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0


RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 5.0),
    ("top_k", 0, 1_000_000),
    ("top_p", 0.0, 1.0),
    ("min_p", 0.0, 1.0),
    ("repetition_penalty", 0.1, 10.0),
    ("presence_penalty", -2.0, 2.0),
    ("frequency_penalty", -2.0, 2.0),
    ("penalty_window", 0, 1_000_000),
    ("max_tokens", 1, 1_000_000),
)
WHOLE = frozenset({"top_k", "penalty_window", "max_tokens"})

PRESETS: Mapping[str, SamplingParams] = {
    "precise": SamplingParams(temperature=0.0, repetition_penalty=1.1),
    "balanced": SamplingParams(),
    "creative": SamplingParams(temperature=1.1, top_k=0, top_p=1.0, min_p=0.08),
}


def with_changes(params: SamplingParams, changes: Mapping[str, Any]) -> SamplingParams:
    """`params` with some fields replaced; a name that does not exist is an error, not ignored."""
    known = {field.name for field in fields(SamplingParams)}
    for name in changes:
        if name not in known:
            raise InvalidParams(f"There is no sampling control called {name!r}.")
    values = dict(changes)
    if "stop" in values:
        # A text would fall into its letters.
        if not isinstance(values["stop"], list | tuple):
            raise InvalidParams("stop must be a list of texts.")
        values["stop"] = tuple(values["stop"])
    return replace(params, **values)
