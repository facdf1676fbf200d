"""Which control tokens belong to the text of an answer."""

import pytest

from engine.tokenizer import THINKING_TAGS, is_shown


@pytest.mark.parametrize("text", ["<think>", "</think>", "[THINK]", "<|channel>", "<channel|>"])
def test_what_marks_thinking_is_shown(text: str) -> None:
    assert is_shown(text)


@pytest.mark.parametrize("text", ["<|im_end|>", "<|endoftext|>", "</s>", "<think> "])
def test_every_other_control_token_is_hidden(text: str) -> None:
    assert not is_shown(text)


def test_no_opening_tag_begins_another_one() -> None:
    tags = sorted(THINKING_TAGS)
    assert not [(a, b) for a in tags for b in tags if a != b and b.startswith(a)]
