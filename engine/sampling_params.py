"""The choices of one generation: how the next token is picked and when to end."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from engine.errors import InvalidParams
from engine.sampling.checks import (
    BAN,
    check_biases,
    check_number,
    check_order,
    check_short_texts,
    check_texts,
    shown,
)
from engine.sampling.controls import BREAKERS, CONTROLS, LLAMA_CPP_ORDER, ORDERS


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to pick the next token. Immutable, so it may be shared by threads.

    What happens to a row of logits, in this order:

    1. What is no number goes.
    2. `logit_bias`, `banned_phrases`, and before `min_tokens` the tokens that end.
    3. The form of the answer, if it has one. Where that leaves one token, this one comes.
    4. Penalties: repetition, frequency and presence, no-repeat n-gram, DRY.
    5. `temperature = 0`: the largest logit, of equals the lowest id.
    6. The filters and the temperature in `sampler_order`. What that leaves out does not run.
    7. The draw. Mirostat stands in for steps 6 and 7, with the temperature before it.

    Most values have a place where the control is off; CONTROLS tells it, and the range. Controls,
    and where they come from; llama.cpp's C samplers are the reference where there is one:

    - `temperature`: logits are divided by it. `dynatemp_range`, `dynatemp_exponent`: it moves in
      `temperature` +- range with the entropy, as a share of the largest possible one, to the power
      of the exponent (llama.cpp's `temp_ext`, from kalomaze's koboldcpp).
    - `top_k`; of equal logits those with the lower ids. `top_p`: nucleus sampling (Holtzman and
      others, arXiv 1904.09751); 0 keeps one token. `min_p` (Nguyen and others, arXiv 2407.01082).
    - `typical_p`: locally typical sampling (Meister and others, arXiv 2202.00666); llama.cpp's
      end, which takes tokens until their sum is above it.
    - `tfs_z`: tail-free sampling (Bricken, 2019), with the masks of text-generation-webui.
    - `top_a`: p >= a * (largest p)^2 (BlinkDL's RWKV, text-generation-webui).
    - `epsilon_cutoff`, `eta_cutoff`: truncation sampling (Hewitt and others, arXiv 2210.15191), as
      transformers has them; probabilities, not ten-thousandths.
    - `top_n_sigma` (Tang and others, arXiv 2411.07641); the deviation is over the candidates.
    - `xtc_probability`, `xtc_threshold`: exclude top choices (p-e-w, text-generation-webui pull
      request 6335). Nothing is left out of a draw where that would hit an end or a line break.
    - `mirostat`, `mirostat_tau`, `mirostat_eta`: Basu and others, arXiv 2007.14966.
    - `adaptive_target`, `adaptive_decay`: adaptive-p (llama.cpp pull request 17927), the last step
      before the draw.
    - `repetition_penalty` (Keskar and others, CTRL, arXiv 1909.05858) counts prompt and answer,
      over the last `penalty_window` tokens. `presence_penalty`, `frequency_penalty` (OpenAI's
      API) count generated tokens only, all of them.
    - `no_repeat_ngram_size`: over prompt and answer (transformers). Where it would leave nothing,
      it does not count.
    - `dry_multiplier`, `dry_base`, `dry_allowed_length`, `dry_window`, `dry_breakers`: do not
      repeat yourself (p-e-w, text-generation-webui pull request 5677; llama.cpp 9702). A token in
      which a breaker ends cuts what repeats, and is not penalised itself. In an answer that has a
      form, JSON's punctuation breaks, too.
    - `logit_bias`: pairs of a token id and what is added (OpenAI's API); -100 and below bans.
    - `banned_phrases`: texts that never come. A token that would complete one is not chosen,
      however the phrase and the tokens overlap; capitals and spaces count as written.
    - `seed`: of the request's own generator. `stop`: the answer ends before such a text.
    - `min_tokens`: so many are generated before an end token; a stop text, or the end of a form,
      may come earlier. `max_tokens`: the answer ends after so many. `ignore_eos`: an end token ends
      nothing. `loop_guard`: an answer that goes round in circles is ended.
    """

    temperature: float = 0.7
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    tfs_z: float = 1.0
    top_a: float = 0.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    adaptive_target: float = 0.0
    adaptive_decay: float = 0.9
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 256
    no_repeat_ngram_size: int = 0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_window: int = 1_000_000
    dry_breakers: tuple[str, ...] = BREAKERS
    logit_bias: tuple[tuple[int, float], ...] = ()
    banned_phrases: tuple[str, ...] = ()
    sampler_order: tuple[str, ...] = LLAMA_CPP_ORDER
    seed: int | None = None
    min_tokens: int = 0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    loop_guard: bool = True

    def __post_init__(self) -> None:
        # Values come from files and from other programs, too, so their kinds are not yet known.
        for control in CONTROLS:
            check_number(
                control.name,
                getattr(self, control.name),
                control.low,
                control.high,
                is_whole=control.is_whole,
            )
        if self.seed is not None and (type(self.seed) is not int or not 0 <= self.seed < 2**64):
            raise InvalidParams(
                f"seed must be a whole number between 0 and 2^64 - 1, got {shown(self.seed)}."
            )
        for name in ("ignore_eos", "loop_guard"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParams(f"{name} must be true or false.")
        check_texts("stop", self.stop)
        for name in ("dry_breakers", "banned_phrases"):
            check_short_texts(name, getattr(self, name))
        check_order(self.sampler_order)
        check_biases(self.logit_bias)
        self._check_together()

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0

    def _check_together(self) -> None:
        if self.min_tokens > self.max_tokens:
            raise InvalidParams(
                f"min_tokens must not be above max_tokens, and {self.min_tokens:,} is above"
                f" {self.max_tokens:,}."
            )
        if self.mirostat and self.adaptive_target:
            raise InvalidParams(
                "mirostat and adaptive_target are two ways to draw: set one of them to 0."
            )


RANGES: tuple[tuple[str, float, float], ...] = tuple(
    (control.name, control.low, control.high) for control in CONTROLS
)

PRESETS: Mapping[str, SamplingParams] = {
    "precise": SamplingParams(temperature=0.0, repetition_penalty=1.1),
    "balanced": SamplingParams(),
    "creative": SamplingParams(temperature=1.1, top_k=0, top_p=1.0, min_p=0.08),
}

MOST_ANSWERS = 32
"""To one prompt, at once."""

LISTS = frozenset({"stop", "dry_breakers", "banned_phrases", "sampler_order"})


def with_changes(params: SamplingParams, changes: Mapping[str, Any]) -> SamplingParams:
    """`params` with some fields replaced; a name that does not exist is an error, not ignored.

    Takes what JSON has for tuples: lists, an object from ids to biases, and for `sampler_order`
    also the name of one of ORDERS.
    """
    known = {field.name for field in fields(SamplingParams)}
    for name in changes:
        if name not in known:
            raise InvalidParams(f"There is no sampling control called {name!r}.")
    values = dict(changes)
    if isinstance(values.get("sampler_order"), str):
        values["sampler_order"] = _order_called(values["sampler_order"])
    for name in LISTS & values.keys():
        # A text would fall into its letters.
        if not isinstance(values[name], list | tuple):
            raise InvalidParams(f"{name} must be a list of texts.")
        values[name] = tuple(values[name])
    if "logit_bias" in values:
        values["logit_bias"] = _pairs_of(values["logit_bias"])
    return replace(params, **values)


def changes_between(params: SamplingParams, wanted: SamplingParams) -> dict[str, Any]:
    """What `with_changes` needs to make `wanted` of `params`, as JSON has it."""
    return {
        field.name: _as_json(value)
        for field in fields(SamplingParams)
        if (value := getattr(wanted, field.name)) != getattr(params, field.name)
    }


def for_answer(params: SamplingParams, number: int) -> SamplingParams:
    """For one of several answers to the same prompt: the seed, if there is one, goes up by the
    answer's number, from 0."""
    if params.seed is None or number == 0:
        return params
    return replace(params, seed=(params.seed + number) % 2**64)


def _order_called(name: str) -> tuple[str, ...]:
    if name not in ORDERS:
        raise InvalidParams(
            f"There is no order {shown(name)!r}: give {', '.join(ORDERS)}, or a list of samplers."
        )
    return ORDERS[name]


def _as_json(value: Any) -> Any:
    """Tuples as lists, in depth."""
    return [_as_json(each) for each in value] if isinstance(value, tuple) else value


def _pairs_of(biases: object) -> tuple[tuple[Any, Any], ...]:
    """Biases as JSON has them: an object whose keys are ids, or a list of pairs."""
    if isinstance(biases, Mapping):
        pairs = [(_id_of(key), bias) for key, bias in biases.items()]
    elif isinstance(biases, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in biases
    ):
        pairs = [(pair[0], pair[1]) for pair in biases]
    else:
        raise InvalidParams("logit_bias must be an object of biases by the ids of tokens.")
    # JSON has no infinity.
    return tuple((token_id, BAN if bias == -math.inf else bias) for token_id, bias in pairs)


def _id_of(key: object) -> object:
    """A key of a JSON object is a text."""
    return int(key) if isinstance(key, str) and key.isdecimal() and len(key) < 10 else key
