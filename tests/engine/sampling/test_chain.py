"""The steps together: their order, what is skipped, and what is drawn in the end."""

import math

import numpy as np
import pytest

from engine.errors import NoTokenLeft
from engine.request import Request
from engine.sampling.chain import Place, explain, stages
from engine.sampling.controls import LLAMA_CPP_ORDER, ORDERS
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from tests.engine.sampling import reference
from tests.engine.sampling.rows import Letters, state_of

OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "temperature": 1.0}
NOWHERE = Place((), 0)


def names(row, place=NOWHERE, tokenizer=None, **params):
    state = state_of(tokenizer, **OFF | params)
    return [stage.name for stage in stages(np.float32(row), state, place)]


def left(row, place=NOWHERE, tokenizer=None, **params):
    """The ids that are drawn from."""
    state = state_of(tokenizer, **OFF | params)
    return explain(np.float32(row), state, place)[-1].token_ids.tolist()


@pytest.mark.parametrize(("order", "kept"), [("llama.cpp", [0, 1]), ("transformers", [0])])
def test_the_place_of_the_temperature_changes_what_is_kept(order, kept):
    """[3, 2, 1] with top-p 0.8 and a temperature of 0.5."""
    params = {"top_p": 0.8, "temperature": 0.5, "sampler_order": ORDERS[order]}
    assert left([3, 2, 1], **params) == kept


def test_every_order_has_every_sampler_once():
    for order in ORDERS.values():
        assert sorted(order) == sorted(LLAMA_CPP_ORDER)


def test_the_default_order_is_that_of_llama_cpp():
    filters = {"top_k": 2, "top_p": 0.99, "min_p": 0.001, "typical_p": 0.99, "top_n_sigma": 3.0}
    row = [3, 2.5, 2, 1]
    assert names(row, **filters, xtc_probability=1.0, temperature=0.5, xtc_threshold=0.5) == [
        "model",
        "top_n_sigma",
        "top_k",
        "typical_p",
        "top_p",
        "min_p",
        "xtc",
        "temperature",
    ]


def test_an_order_of_ones_own_is_followed_and_what_it_leaves_out_does_not_run():
    params = {"top_k": 2, "top_p": 0.5, "min_p": 0.9, "temperature": 2.0}
    assert names([3, 2, 1], **params, sampler_order=("top_p", "top_k")) == ["model", "top_p"]
    assert names([1, 1, 1, 1], **params, sampler_order=("top_p", "temperature")) == [
        "model",
        "top_p",
        "temperature",
    ]


def test_bans_come_before_penalties_and_those_before_the_choice():
    place = Place((0, 1), 2)
    found = names(
        [3, 2, 1],
        place,
        Letters(3, ends=(2,)),
        logit_bias=((0, -1.0),),
        banned_phrases=("x",),
        min_tokens=5,
        repetition_penalty=1.1,
        no_repeat_ngram_size=1,
        dry_multiplier=1.0,
        temperature=0.0,
    )
    assert found == [
        "model",
        "logit_bias",
        "banned_phrases",
        "min_tokens",
        "penalties",
        "dry",
        "greedy",
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"logit_bias": ((0, -100), (1, -math.inf))},
        {"banned_phrases": ("a", "b")},
        {"logit_bias": ((0, -100),), "banned_phrases": ("b",), "temperature": 0.0},
    ],
)
def test_bans_that_leave_nothing_are_an_error_and_never_token_zero(params):
    with pytest.raises(NoTokenLeft, match="all that could is banned"):
        left([3, 2], tokenizer=Letters(texts="ab"), **params)


def test_before_its_least_length_an_answer_does_not_end_unless_it_must():
    ends = Letters(ends=(0,))
    assert left([9, 1, 1], Place((1,), 1), ends, min_tokens=2) == [0, 1, 2]
    assert names([9, 1], Place((1,), 1), ends, min_tokens=2) == ["model", "min_tokens"]
    distribution = explain(np.float32([9, 1]), state_of(ends, **OFF, min_tokens=2), Place((1,), 1))[
        -1
    ]
    assert distribution.probabilities.tolist() == [0, 1]
    assert names([9, 1], Place((1, 1), 2), ends, min_tokens=2) == ["model"]
    # A form that allows nothing but the end is not held up.
    only_end = Place((1,), 1, is_in_form=True)
    assert left([9, -math.inf], only_end, ends, min_tokens=2) == [0]


HARSH = {
    "repetition_penalty": 10.0,
    "frequency_penalty": 2.0,
    "no_repeat_ngram_size": 1,
    "dry_multiplier": 100.0,
    "dry_allowed_length": 1,
    "xtc_probability": 1.0,
    "mirostat": 2,
}


def test_where_a_form_leaves_one_token_it_comes_and_nothing_else_runs():
    row = np.full(9, -np.inf)
    row[4] = -3.0
    place = Place((4,) * 50, 50, is_in_form=True)
    assert names(row, place, **HARSH) == ["model", "form"]
    assert left(row, place, **HARSH) == [4]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_penalties_on_all_that_a_form_allows_leave_it_allowed(temperature):
    row = np.full(9, -np.inf)
    row[[2, 4]] = 5.0
    place = Place((2, 4) * 50, 100, is_in_form=True)
    params = {**HARSH, "mirostat": 0, "dry_base": 10.0, "temperature": temperature}
    assert set(left(row, place, **params)) <= {2, 4}
    assert "no_repeat_ngram" not in names(row, place, **params)


def test_mirostat_stands_in_for_the_filters_after_the_temperature():
    found = names([3, 2, 1], top_k=1, top_p=0.1, temperature=0.7, mirostat=2)
    assert found == ["model", "temperature", "mirostat"]


def test_adaptive_p_comes_last():
    found = names([3, 2, 1], top_k=2, temperature=0.7, adaptive_target=0.3)
    assert found == ["model", "top_k", "temperature", "adaptive_p"]


def test_xtc_lets_ends_and_line_breaks_stay():
    texts = ["a", "b", "\n", "end"]
    row = np.log([0.4, 0.3, 0.2, 0.1])
    params = {"xtc_probability": 1.0, "xtc_threshold": 0.15}
    assert left(row, **params) == [2, 3]
    # The line break is the least likely choice, and stays; as a likelier one it would go.
    assert left(row, tokenizer=Letters(texts=texts, ends=(3,)), **params) == [2, 3]
    swapped = np.log([0.4, 0.2, 0.3, 0.1])
    assert len(left(swapped, tokenizer=Letters(texts=texts, ends=(3,)), **params)) == 4


def test_an_explanation_shows_every_step_and_changes_nothing():
    state = state_of(
        temperature=0.5, top_k=3, top_p=1.0, min_p=0.0, mirostat=0, repetition_penalty=2.0, seed=1
    )
    row = np.float32([4, 3, 2, 1])
    place = Place((0,), 1)
    first = explain(row, state, place)
    assert [each.name for each in first] == ["model", "penalties", "top_k", "temperature"]
    assert [each.token_ids.tolist() for each in first[1:3]] == [[0, 1, 2, 3], [0, 1, 2]]
    assert first[0].probabilities == pytest.approx(reference.softmax(row))
    assert first[-1].probabilities == pytest.approx(reference.softmax([2, 3, 2], 0.5))
    again = explain(row, state, place)
    assert [each.probabilities.tolist() for each in again] == [
        each.probabilities.tolist() for each in first
    ]
    assert row.tolist() == [4, 3, 2, 1]


CHAINS = {
    "default": {},
    "temperature first": {"sampler_order": ORDERS["transformers"], "temperature": 1.3},
    "all filters": {
        "top_k": 30,
        "top_p": 0.97,
        "min_p": 0.01,
        "typical_p": 0.95,
        "tfs_z": 0.97,
        "top_a": 0.05,
        "epsilon_cutoff": 0.002,
        "eta_cutoff": 0.002,
        "top_n_sigma": 2.5,
    },
    "dynamic temperature": {"dynatemp_range": 0.5, "dynatemp_exponent": 0.7},
    "xtc": {"xtc_probability": 1.0, "xtc_threshold": 0.1, "top_k": 8},
    "mirostat 1": {"mirostat": 1, "mirostat_tau": 3.0, "mirostat_eta": 0.0},
    "mirostat 2": {"mirostat": 2, "mirostat_tau": 3.0, "mirostat_eta": 0.0},
    "penalties": {"repetition_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": 0.1},
    "everything off": OFF,
}
NUM_DRAWS = 20_000


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_drawn_follows_the_last_distribution(name):
    """Chi-square of 20,000 draws: 99.9 % of honest generators stay under the bound."""
    row = (np.random.default_rng(17).standard_normal(60) * 1.5).astype(np.float32)
    sampler = Sampler(Letters(60))
    request = Request([1, 2], SamplingParams(**CHAINS[name], seed=5))
    request.token_ids.extend([3, 4, 4])
    place = Place(request.token_ids, request.num_output_tokens)
    expected = np.zeros(60)
    last = explain(row, sampler.state_of(request), place)[-1]
    expected[last.token_ids] = NUM_DRAWS * last.probabilities
    drawn = [sampler.sample_row(row, request) for _ in range(NUM_DRAWS)]
    counts = np.bincount(drawn, minlength=60)
    assert not counts[expected == 0].any()
    # Cells of less than five are counted together.
    rare = expected < 5
    cells = [*zip(counts[~rare], expected[~rare], strict=True)]
    if expected[rare].sum() > 0:
        cells.append((counts[rare].sum(), expected[rare].sum()))
    statistic = sum((found - wanted) ** 2 / wanted for found, wanted in cells)
    freedom = max(1, len(cells) - 1)
    # Wilson and Hilferty's approximation of the chi-square quantile at 99.9 %.
    bound = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < bound


DEGENERATE = [
    {"top_p": 0.0},
    {"top_p": 1.0},
    {"top_k": 1},
    {"top_k": 1_000_000},
    {"min_p": 1.0},
    {"typical_p": 0.0},
    {"tfs_z": 0.0},
    {"top_a": 1.0},
    {"epsilon_cutoff": 1.0},
    {"eta_cutoff": 1.0},
    {"top_n_sigma": 1e-9},
    {"xtc_probability": 1.0, "xtc_threshold": 0.0},
    {"temperature": 1e-320},
    {"temperature": 0.1, "dynatemp_range": 5.0},
    {"mirostat": 1},
    {"mirostat": 2, "mirostat_tau": 0.0, "mirostat_eta": 1.0},
    {"adaptive_target": 1.0, "adaptive_decay": 0.0},
    {"repetition_penalty": 10.0, "dry_multiplier": 100.0, "no_repeat_ngram_size": 1},
    {"repetition_penalty": 0.1, "presence_penalty": -2.0},
]
ROWS = {
    "one token": [-7.0],
    "all equal": [2.0] * 50,
    "one possible": [-np.inf, 3.0, -np.inf],
    "nan": [np.nan, 1.0, 0.0, np.nan],
    "plus infinity": [1.0, np.inf, np.inf, np.nan],
    "huge": [3e38, -3e38, 3e38, 0.0],
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("params", DEGENERATE, ids=str)
@pytest.mark.parametrize("is_in_form", [False, True])
def test_the_strangest_rows_and_values_give_a_possible_token(row, params, is_in_form):
    logits = np.float32(ROWS[row])
    possible = np.isposinf(logits) if row == "plus infinity" else np.isfinite(logits)
    sampler = Sampler(Letters(len(logits)))
    request = Request([0], SamplingParams(**OFF | params, seed=1))
    for _ in range(12):
        token = sampler.sample_row(logits, request, is_in_form=is_in_form)
        assert possible[token]
        request.token_ids.append(token)
