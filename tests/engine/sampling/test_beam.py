"""Beam search by itself, over a made-up model: against the rules written down plainly."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from engine.errors import InvalidParams
from engine.logprobs import TokenLogprob
from engine.sampling.beam import BeamParams, BeamSearch, EarlyStopping

END = 0
NUM_TOKENS = 5
MAX_TOKENS = 6


def logprobs_after(seed: int, token_ids: Sequence[int]) -> np.ndarray:
    generator = np.random.default_rng([seed, *token_ids])
    row = generator.normal(0, 1.5, NUM_TOKENS)
    return row - np.log(np.exp(row).sum())


def search(seed: int, max_tokens: int = MAX_TOKENS, **changes: object) -> BeamSearch:
    params = BeamParams(**{"num_beams": 3, "num_answers": 3, **changes})  # type: ignore[arg-type]
    beams = BeamSearch(params, max_tokens, 1, lambda token_ids: token_ids[-1] == END)
    goes_on = True
    while goes_on:
        candidates = []
        for beam in beams.running:
            row = logprobs_after(seed, beam.token_ids)
            best = np.argsort(-row, kind="stable")[: beams.num_candidates]
            candidates.append([TokenLogprob(int(each), float(row[each])) for each in best])
        goes_on = beams.advance(candidates)
    return beams


def all_answers(seed: int, max_tokens: int) -> dict[tuple[int, ...], float]:
    """Every possible answer and the logarithm of its probability."""
    found: dict[tuple[int, ...], float] = {}
    for length in range(1, max_tokens + 1):
        for token_ids in itertools.product(range(NUM_TOKENS), repeat=length):
            is_ended = token_ids[-1] == END
            if END in token_ids[:-1] or not (is_ended or length == max_tokens):
                continue
            found[token_ids] = sum(
                logprobs_after(seed, token_ids[:place])[token_id]
                for place, token_id in enumerate(token_ids)
            )
    return found


@pytest.mark.parametrize("seed", range(10))
def test_with_beams_for_everything_the_best_answers_are_found(seed: int) -> None:
    """16 beams hold all beginnings of three tokens that matter, and nothing is cut off."""
    beams = search(
        seed,
        max_tokens=3,
        num_beams=16,
        num_answers=3,
        length_penalty=0.0,
        early_stopping=EarlyStopping.NEVER,
    )
    exact = all_answers(seed, 3)
    best = sorted(exact, key=lambda token_ids: exact[token_ids], reverse=True)[:3]
    assert [answer.token_ids for answer in beams.answers] == best
    for answer in beams.answers:
        assert answer.score == answer.logprob == pytest.approx(exact[answer.token_ids])


@pytest.mark.parametrize("seed", range(10))
def test_one_beam_takes_the_best_token_each_time(seed: int) -> None:
    answer = search(seed, num_beams=1, num_answers=1).answers[0]
    token_ids: list[int] = []
    while len(token_ids) < MAX_TOKENS and (not token_ids or token_ids[-1] != END):
        token_ids.append(int(logprobs_after(seed, token_ids).argmax()))
    # It goes on beside an end that is not the best, so what comes out is at least as likely.
    exact = sum(logprobs_after(seed, token_ids[:i])[each] for i, each in enumerate(token_ids))
    assert answer.score >= exact / len(token_ids) - 1e-9


@pytest.mark.parametrize("length_penalty", [-2.0, 0.0, 1.0, 3.0])
def test_a_score_is_the_sum_over_the_length_to_the_power_of_the_penalty(
    length_penalty: float,
) -> None:
    for seed in range(10):
        for answer in search(seed, length_penalty=length_penalty).answers:
            exact = sum(
                logprobs_after(seed, answer.token_ids[:place])[token_id]
                for place, token_id in enumerate(answer.token_ids)
            )
            assert answer.logprob == pytest.approx(exact)
            length = len(answer.token_ids)
            assert answer.score == pytest.approx(exact / length**length_penalty)


def test_a_higher_penalty_brings_longer_answers() -> None:
    def mean_length(penalty: float) -> float:
        found = [search(seed, length_penalty=penalty).answers[0] for seed in range(30)]
        return float(np.mean([len(answer.token_ids) for answer in found]))

    assert mean_length(-2.0) < mean_length(0.0) < mean_length(3.0)


def test_stopping_early_never_finds_better_answers() -> None:
    for seed in range(30):
        scores = {
            stopping: search(seed, early_stopping=stopping, length_penalty=1.0).answers[0].score
            for stopping in EarlyStopping
        }
        assert scores[EarlyStopping.YES] <= scores[EarlyStopping.NEVER] + 1e-12
        assert scores[EarlyStopping.NO] <= scores[EarlyStopping.NEVER] + 1e-12


def test_answers_are_different_and_the_best_comes_first() -> None:
    for seed in range(20):
        answers = search(seed).answers
        assert len({answer.token_ids for answer in answers}) == len(answers) == 3
        scores = [answer.score for answer in answers]
        assert scores == sorted(scores, reverse=True)


def test_beams_that_nothing_can_follow_end_the_search() -> None:
    beams = BeamSearch(BeamParams(num_beams=2), 5, 1, lambda token_ids: False)
    assert beams.advance([[TokenLogprob(1, -0.5), TokenLogprob(2, -1.0)]])
    assert not beams.advance([[], []])
    assert beams.answers == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_beams": 0},
        {"num_beams": 17},
        {"num_beams": 2, "num_answers": 3},
        {"num_beams": 2, "length_penalty": float("nan")},
        {"num_beams": True},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParams):
        BeamParams(**wrong)  # type: ignore[arg-type]
