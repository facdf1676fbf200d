"""The way from a row of logits to what is drawn from, step by step, in the one order there is.

`SamplingParams` says what the order is. The sampler takes the last stage; a chart or an inspector
shows all of them. Nothing here writes into the row that was given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import NoTokenLeft
from engine.sampling import cutoffs, samplers
from engine.sampling.candidates import Candidates, Indices, Logits, Weights
from engine.sampling.repeats import completing_ngrams
from engine.sampling.state import SamplerState
from engine.sampling.temperature import dynamic_temperature
from engine.sampling.xtc import without_top_choices
from engine.sampling_params import SamplingParams

BEFORE_CHOICE = frozenset(
    {
        "model",
        "logit_bias",
        "banned_phrases",
        "min_tokens",
        "form",
        "penalties",
        "no_repeat_ngram",
        "dry",
    }
)
"""Steps that say what may come, not what is taken of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands. `is_in_form`: the row has only what a form allows."""

    token_ids: Sequence[int]
    num_output_tokens: int
    is_in_form: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """What is in the draw after a step of this name."""

    name: str
    candidates: Candidates

    @property
    def is_settled(self) -> bool:
        """There is nothing to draw: a form leaves one token, or the likeliest was asked for."""
        return self.name in ("form", "greedy")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A stage for somebody who looks at it: ascending ids, and the probability of each."""

    name: str
    token_ids: Indices
    probabilities: Weights


def explain(row: Logits, state: SamplerState, place: Place) -> list[Distribution]:
    """The distribution after each step that does something, from the model's own on.

    `row` is one that the sampler could use: no NaN, no +inf, and not all -inf. The state stays as
    it is; where chance decides (XTC), it decides as it will for the next token.
    """
    return [
        Distribution(
            stage.name, stage.candidates.token_ids.copy(), stage.candidates.probabilities()
        )
        for stage in stages(row, state.copy(), place)
    ]


def stages(row: Logits, state: SamplerState, place: Place) -> Iterator[Stage]:
    """Every step that does something; a stage is good until the next one is asked for.

    Raises NoTokenLeft when what is banned leaves nothing.
    """
    candidates = Candidates.of(row)
    yield Stage("model", candidates)
    if state.has_bans or state.has_penalties:
        row = row.copy()
    for name, candidates in _without_bans(row, state, place):
        yield Stage(name, candidates)
    # The likeliest is found without asking what else there is.
    if place.is_in_form and not (state.params.is_greedy and not state.has_penalties):
        candidates = candidates.keep(np.flatnonzero(row > -np.inf))
        if len(candidates) == 1:
            yield Stage("form", candidates)
            return
    for name in _penalised(row, state, place):
        candidates = Candidates.of(row)
        if place.is_in_form:
            candidates = candidates.keep(np.flatnonzero(row > -np.inf))
        yield Stage(name, candidates)
    if state.params.is_greedy:
        yield Stage("greedy", candidates.keep(np.array([candidates.logits.argmax()])))
        return
    # Mirostat has a bound of its own in the place of the filters.
    for name in ("temperature",) if state.mirostat else state.params.sampler_order:
        changed = _filtered(name, candidates, state)
        if changed is not None:
            candidates = changed
            yield Stage(name, candidates)
    if state.mirostat is not None:
        yield Stage("mirostat", candidates.keep(state.mirostat.keep(candidates)))
    elif state.adaptive is not None:
        yield Stage("adaptive_p", state.adaptive.shape(candidates))


def _without_bans(
    row: Logits, state: SamplerState, place: Place
) -> Iterator[tuple[str, Candidates]]:
    """Step 2, in place."""
    if state.bias is not None:
        state.bias.apply(row)
        yield "logit_bias", _some(row)
    if state.phrases is not None:
        state.phrases.follow(place.token_ids)
        for ids in state.phrases.completing():
            row[ids] = -np.inf
        yield "banned_phrases", _some(row)
    if place.num_output_tokens < state.params.min_tokens and _ban(row, state.vocabulary.ends):
        yield "min_tokens", Candidates.of(row)


def _penalised(row: Logits, state: SamplerState, place: Place) -> Iterator[str]:
    """Step 4, in place: the names of what was applied."""
    if state.history is not None:
        state.history.follow(place.token_ids)
    if state.penalties is not None:
        state.penalties.apply(row, place.token_ids)
        yield "penalties"
    size = state.params.no_repeat_ngram_size
    if (
        size
        and state.history is not None
        and _ban(row, completing_ngrams(state.history.tokens, size))
    ):
        yield "no_repeat_ngram"
    if state.dry is not None and state.history is not None:
        tokens = state.history.tokens
        state.dry.follow(tokens, is_in_form=place.is_in_form)
        ids, amounts = state.dry.penalties(tokens, is_in_form=place.is_in_form)
        row[ids] -= amounts
        yield "dry"


def _some(row: Logits) -> Candidates:
    candidates = Candidates.of(row)
    if np.isneginf(candidates.highest):
        raise NoTokenLeft(
            "Nothing may come next, since all that could is banned: take something out of"
            " logit_bias or banned_phrases."
        )
    return candidates


def _ban(row: Logits, ids: Indices) -> bool:
    """In place. False: nothing else would be left, so nothing is changed."""
    before = row[ids]
    row[ids] = -np.inf
    if np.isneginf(row.max()):
        row[ids] = before
        return False
    return True


def _filtered(name: str, candidates: Candidates, state: SamplerState) -> Candidates | None:
    """What a step of `sampler_order` leaves. None: it is off."""
    params = state.params
    match name:
        case "temperature":
            return _at_temperature(candidates, params)
        case "top_k" if 0 < params.top_k < len(candidates):
            kept = samplers.top_k(candidates, params.top_k)
        case "top_p" if params.top_p < 1.0:
            kept = samplers.top_p(candidates, params.top_p)
        case "min_p" if params.min_p > 0.0:
            kept = samplers.min_p(candidates, params.min_p)
        case "typical_p" if params.typical_p < 1.0:
            kept = cutoffs.typical_p(candidates, params.typical_p)
        case "tfs_z" if params.tfs_z < 1.0:
            kept = cutoffs.tail_free(candidates, params.tfs_z)
        case "top_a" if params.top_a > 0.0:
            kept = cutoffs.top_a(candidates, params.top_a)
        case "epsilon_cutoff" if params.epsilon_cutoff > 0.0:
            kept = cutoffs.epsilon_cutoff(candidates, params.epsilon_cutoff)
        case "eta_cutoff" if params.eta_cutoff > 0.0:
            kept = cutoffs.eta_cutoff(candidates, params.eta_cutoff)
        case "top_n_sigma" if params.top_n_sigma > 0.0:
            kept = cutoffs.top_n_sigma(candidates, params.top_n_sigma)
        case "xtc" if params.xtc_probability > 0.0:
            if state.generator.random() >= params.xtc_probability:
                return None
            protected = state.vocabulary.ends_and_line_breaks
            kept = without_top_choices(candidates, params.xtc_threshold, protected)
        case _:
            return None
    return candidates.keep(kept)


def _at_temperature(candidates: Candidates, params: SamplingParams) -> Candidates | None:
    temperature = params.temperature
    if params.dynatemp_range > 0.0:
        temperature = dynamic_temperature(
            candidates, temperature, params.dynatemp_range, params.dynatemp_exponent
        )
    return None if temperature == 1.0 else candidates.with_temperature(temperature)
