"""Thinking and answer are told apart, however the text arrives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.thinking import ThinkingSplitter
from engine.tokenizer import THINKING_TAGS

FRAGMENTS = [
    *THINKING_TAGS,
    *THINKING_TAGS.values(),
    "\n",
    "\r\n",
    " ",
    "a",
    "</",
    "<th",
    "ink>",
    "```",
    "é",
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)


def fed(pieces: list[str], opened_tag: str = "") -> tuple[str, str]:
    splitter = ThinkingSplitter(opened_tag)
    parts = [splitter.feed(piece) for piece in pieces]
    parts.append(splitter.finish())
    return "".join(part[0] for part in parts), "".join(part[1] for part in parts)


@settings(max_examples=60, deadline=None)
@given(texts, st.data(), st.sampled_from(["", "<think>"]))
def test_how_the_text_is_cut_changes_nothing(
    text: str, data: st.DataObject, opened_tag: str
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    borders = [0, *cuts, len(text)]
    pieces = [text[begin:end] for begin, end in zip(borders, borders[1:], strict=False)]

    assert fed(pieces, opened_tag) == fed([text], opened_tag)
    assert fed(list(text), opened_tag) == fed([text], opened_tag)


@pytest.mark.parametrize(("opening", "closing"), THINKING_TAGS.items())
def test_every_pair_of_tags_is_known(opening: str, closing: str) -> None:
    text = f" \n{opening}\nA deep\nthought\n{closing}\n\nThe answer\n"
    assert fed([text]) == ("A deep\nthought", "The answer\n")


def test_no_opening_tag_begins_another() -> None:
    assert not [(a, b) for a in THINKING_TAGS for b in THINKING_TAGS if a != b and a.startswith(b)]


@pytest.mark.parametrize(
    "text",
    [
        "Use <think> for thoughts</think>.",
        "```\n<think>\n```\nis a tag</think>",
        "`<think>` is a tag",
        "<thin",
        "<thinker>a</thinker>",
        "  \n",
        "",
        "[TH",
        "\nplain",
    ],
)
def test_text_that_does_not_open_with_a_tag_is_all_answer(text: str) -> None:
    assert fed([text]) == ("", text)
    assert fed(list(text)) == ("", text)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>never closed", "never closed", ""),
        ("<think>a</thin", "a</thin", ""),
        ("<think></think>Hi", "", "Hi"),
        ("<think>\n\n</think>\n\nHi", "", "Hi"),
        ("<think>a</thinking>b</think>c", "a</thinking>b", "c"),
        ("<think>a</think>\nb<think>c</think>", "a", "b<think>c</think>"),
        ("<think>a\n\nb\n</think>\n\n\n", "a\n\nb", ""),
    ],
)
def test_thinking_ends_at_its_own_closing_tag(text: str, thinking: str, answer: str) -> None:
    assert fed([text]) == (thinking, answer)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("a\n</think>\n\nb", "a", "b"),
        ("<think>\na\n</think>\nb", "a", "b"),
        ("<thin", "<thin", ""),
        ("still at it", "still at it", ""),
        ("\n</think>\n\nb", "", "b"),
    ],
)
def test_a_template_may_have_opened_the_tag(text: str, thinking: str, answer: str) -> None:
    assert fed([text], "<think>") == (thinking, answer)
    assert fed(list(text), "<think>") == (thinking, answer)


def test_the_tag_that_the_template_opened_may_be_another() -> None:
    assert fed(["a[/THINK]b"], "[THINK]") == ("a", "b")


def test_a_reader_sees_thinking_before_it_ends() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed("<think>so far") == ("so far", "")
    assert splitter.is_thinking
    assert splitter.feed(" so good</think>done") == (" so good", "done")
    assert not splitter.is_thinking
