"""Ids that stand for pictures, and everything that reads a prompt and must not take them for
tokens."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.kv.segment import segment_key
from engine.media import (
    SAMPLE_RATE,
    Media,
    MediaKind,
    MediaSpan,
    first_media_id,
    media_ids,
    num_resampled,
    resampled,
)
from engine.request import GRID_TOKENS, Request, RequestOptions
from engine.sampling.lookup import PromptLookup
from engine.sampling.penalties import Penalties
from engine.sampling.repeats import Dry, completing_ngrams
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams
from tests.engine.run import EngineRun
from tests.fakes import NUM_TOKENS, ByteTokenizer

SEEN = media_ids(b"cat", 0, 6)
PICTURE = Media(kind=MediaKind.IMAGE, digest=b"cat", width=1, height=1, load=lambda: b"abc")


def test_each_content_has_ids_of_its_own_below_all_tokens() -> None:
    runs = [
        media_ids(*each) for each in ((b"a", 0, 64), (b"b", 0, 64), (b"a", 1, 64), (b"a", 0, 63))
    ]
    assert all(-(2**31) <= each < 0 for run in runs for each in run)
    assert len({each for run in runs for each in run}) == sum(map(len, runs))
    assert media_ids(b"a", 0, 64) == runs[0]
    # They are int32 on the way to the disk, and each names another segment.
    keys = {segment_key(b"n" * 32, list(run), 0, False) for run in runs}
    assert len(keys) == len(runs)


def test_the_first_of_them_is_found() -> None:
    assert first_media_id([1, 2, 3]) is None
    assert first_media_id([1, *SEEN, 2]) == 1


@given(st.integers(1, 5000), st.sampled_from([8000, 16000, 22050, 24000, 44100, 48000]))
def test_a_sound_has_as_many_samples_as_are_announced(count: int, rate: int) -> None:
    tone = np.sin(np.arange(count) / 9).astype(np.float32)
    made = resampled(tone, rate)
    assert len(made) == num_resampled(count, rate) == -(-count * rate // SAMPLE_RATE)
    assert made.dtype == np.float32 and np.abs(made).max() <= 1


def test_penalties_are_for_tokens_alone() -> None:
    params = SamplingParams(
        repetition_penalty=2.0, frequency_penalty=1.0, presence_penalty=1.0, penalty_window=5
    )
    prompt = [3, *SEEN, 4]
    row = np.ones(10, np.float32)
    penalties = Penalties(params, len(prompt), len(prompt))
    penalties.apply(row, [*prompt, 5])
    assert [index for index in range(10) if row[index] != 1] == [4, 5]
    # They leave the window again, and so do the places of the picture.
    row = np.ones(10, np.float32)
    penalties.apply(row, [*prompt, 5, 6, 7, 8, 9])
    assert [index for index in range(10) if row[index] != 1] == [5, 6, 7, 8, 9]


def test_a_picture_is_no_run_that_could_be_repeated() -> None:
    tokens = np.array([1, 2, *SEEN, 7, 1, 2], np.int32)
    assert completing_ngrams(tokens, 3).tolist() == []
    assert completing_ngrams(np.array([1, 2, 3, 1, 2], np.int32), 3).tolist() == [3]


def test_dry_penalises_no_place_of_a_picture() -> None:
    params = SamplingParams(dry_multiplier=1.0, dry_allowed_length=1, dry_breakers=())
    dry = Dry(params, SamplingVocabulary(ByteTokenizer()))
    tokens = np.array([65, 66, *SEEN, 67, 65, 66], np.int32)
    dry.follow(tokens, is_in_form=False)
    ids, _ = dry.penalties(tokens, is_in_form=False)
    assert ids.tolist() == []


def test_a_guess_ends_before_a_picture() -> None:
    lookup = PromptLookup()
    lookup.extend([1, 2, 3, 9, *SEEN, 8, 1, 2, 3])
    guessed, length = lookup.guess(12)
    assert list(guessed) == [9] and length >= 3
    nothing = PromptLookup()
    nothing.extend([1, 2, 3, *SEEN, 1, 2, 3])
    assert list(nothing.guess(12)[0]) == []


def request(is_reproducible: bool, *, is_whole: bool, start: int = 50, num: int = 40) -> Request:
    span = MediaSpan(start=start, num_tokens=num, media=PICTURE, chunk=0, is_whole=is_whole)
    prompt = [1] * start + list(media_ids(b"cat", 0, num)) + [2] * 200
    options = RequestOptions(is_reproducible=is_reproducible)
    return Request(prompt, SamplingParams(), options, spans=(span,))


def test_what_is_computed_in_one_step_is_not_gone_on_with_where_bits_count() -> None:
    assert request(False, is_whole=True).reusable(70) == 70
    assert request(True, is_whole=False).reusable(70) == GRID_TOKENS
    assert request(True, is_whole=True).reusable(70) == 50
    assert request(True, is_whole=True).reusable(140) == 128
    assert request(True, is_whole=True).reusable(49) == 0


def test_the_next_picture_is_the_first_that_is_not_read_to_its_end() -> None:
    one = request(False, is_whole=False)
    (span,) = one.spans
    for computed, expected in ((0, span), (50, span), (89, span), (90, None)):
        one.num_computed_tokens = computed
        assert one.next_span is expected


def test_an_engine_without_eyes_refuses_pictures_and_goes_on() -> None:
    run = EngineRun()
    with pytest.raises(UsageError, match="reads neither pictures nor sounds"):
        run.engine.spans_in([65, *SEEN, 66])
    assert run.engine.spans_in([65, 66]) == ()
    assert run.engine.num_vocabulary == NUM_TOKENS


def test_two_media_with_one_content_are_equal() -> None:
    assert replace(PICTURE, load=lambda: b"") == PICTURE
    assert PICTURE.num_bytes == 3
    sound = Media(kind=MediaKind.AUDIO, digest=b"x", width=7, height=1, load=lambda: b"")
    assert sound.num_bytes == 28
