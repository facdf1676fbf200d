"""A preset as a file: what was written comes back, and what is not possible is refused."""

import json
from typing import Any

import pytest

from app.chat.answer_form import AnswerForm
from app.chat.example import MOST_EXAMPLES, Example
from app.presets.preset import LARGEST_FILE, Preset, read_preset, read_preset_file
from engine.errors import UsageError
from engine.guided.grammar import GrammarKind
from engine.sampling_params import SamplingParams

FULL = Preset(
    name="Häiku <b>",
    sampling={"temperature": 1.5, "stop": ["\n\n", "é"], "logit_bias": [[7, -100.0]], "top_k": 3},
    system_prompt="<|im_start|>system\nBe brief.",
    form=AnswerForm.of_own(GrammarKind.CHOICE, '["yes", "no"]'),
    examples=(Example("Is it?", "yes"), Example("<|im_end|>", "no")),
)


def document(**changes: Any) -> dict[str, Any]:
    return {**FULL.as_json(), **changes}


def test_a_preset_comes_back_from_its_file() -> None:
    assert read_preset_file(FULL.as_text()) == FULL
    assert read_preset_file("\ufeff" + FULL.as_text()) == FULL
    empty = Preset(name="Empty")
    assert read_preset_file(empty.as_text()) == empty


def test_what_is_left_out_is_left_as_it_is() -> None:
    assert read_preset({"inglenook_preset": 1, "name": "A"}) == Preset(name="A")


def test_a_given_preset_leaves_length_and_seed_and_a_saved_one_does_not() -> None:
    before = SamplingParams(max_tokens=77, seed=5, top_k=9)
    given = Preset(name="P", sampling={"temperature": 0.0}, is_given=True)
    params = given.params_over(before)
    assert (params.temperature, params.max_tokens, params.seed, params.top_k) == (0.0, 77, 5, 40)
    params = Preset(name="P", sampling={"max_tokens": 5}).params_over(before)
    assert (params.max_tokens, params.seed) == (5, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampling": {"temperature": 99}}, "temperature must be between 0 and 5"),
        ({"sampling": {"heat": 1}}, "no sampling control called 'heat'"),
        ({"sampling": {"temperature": "1"}}, "temperature must be a number"),
        ({"sampling": []}, "`sampling` is no object"),
        ({"sampling": {"sampler_order": ["top_k", "top_k"]}}, "top_k twice"),
        ({"sampling": {"min_tokens": 9, "max_tokens": 3}}, "must not be above max_tokens"),
        ({"system_prompt": 3}, "`system_prompt` is no text"),
        ({"system_prompt": "x" * 100_001}, "100,001 characters"),
        ({"form": {"kind": "spell", "source": ""}}, "its form is not possible"),
        ({"form": "json"}, "its form is not possible"),
        ({"examples": [{"user": "a"}]}, "list of objects"),
        ({"examples": [{"user": "a", "assistant": " "}]}, "needs a message and the answer"),
        ({"examples": [{"user": "a", "assistant": "b", "system": "c"}]}, "list of objects"),
        ({"examples": [{"user": "a", "assistant": "b"}] * (MOST_EXAMPLES + 1)}, "and these are 33"),
        ({"examples": [{"user": "a", "assistant": "b" * 20_001}]}, "20,001"),
        ({"name": ""}, "needs a name"),
        ({"name": 5}, "needs a name"),
        ({"name": "x" * 61}, "has 61"),
        ({"name": "a\u202eb"}, "cannot be seen"),
        ({"name": "\ud800"}, "characters that are none"),
        ({"script": "x"}, "'script'"),
        ({"inglenook_preset": 2}, "newer version"),
        ({"inglenook_preset": True}, "version is no number"),
        ({"inglenook_preset": "1"}, "version is no number"),
    ],
)
def test_what_is_not_possible_is_refused_in_a_sentence(changes: Any, words: str) -> None:
    with pytest.raises(UsageError, match=r".*\.$") as refusal:
        read_preset_file(json.dumps(document(**changes)))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '"inglenook_preset"', '{"name": "x"}', "[" * 100_000, "NaN"],
)
def test_a_file_that_is_no_preset_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="nothing was changed"):
        read_preset_file(text)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="temperature"):
        read_preset_file('{"inglenook_preset": 1, "name": "a", "sampling": {"temperature": NaN}}')


def test_a_file_that_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(UsageError, match="1,000,001 bytes"):
        read_preset_file(" " * (LARGEST_FILE + 1))
