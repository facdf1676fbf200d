"""Choices go into the page's boxes and come back; half a pair is no example."""

import json

import pytest

from app.chat.example import Example
from app.ui.choices import Choices, read_examples
from engine.errors import UsageError
from engine.sampling_params import SamplingParams


def test_choices_come_back_from_the_boxes() -> None:
    params = SamplingParams(seed=2**63 + 1, stop=("\n", "é"), logit_bias=((3, -100.0),), top_k=2)
    choices = Choices("<b>", params, (Example("a", "b"),))
    assert Choices.of_widgets(choices.for_widgets()) == choices


def test_an_empty_row_is_no_example_yet_and_half_a_one_is_a_fault() -> None:
    rows = [{"user": "", "assistant": " "}, {"user": "a", "assistant": "b"}]
    assert read_examples(json.dumps(rows)) == (Example("a", "b"),)
    with pytest.raises(UsageError, match="needs a message and the answer"):
        read_examples(json.dumps([{"user": "a", "assistant": ""}]))


@pytest.mark.parametrize("text", ["{", "3", "[1]"])
def test_what_no_script_wrote_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="reload"):
        read_examples(text)
