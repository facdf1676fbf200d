"""A body for /v1: every field is understood or refused by its name."""

import json
from typing import Any

import pytest

from app.api.chat_request import read_chat_request
from app.chat.message import Role
from engine.errors import InvalidParams, UsageError
from engine.sampling_params import SamplingParams

DEFAULTS = SamplingParams(temperature=0.5)
HELLO = [{"role": "user", "content": "Hello"}]


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "any", "messages": HELLO, **fields}


def test_a_plain_request_takes_the_defaults() -> None:
    wanted = read_chat_request(body(), DEFAULTS)
    assert wanted.params == DEFAULTS
    assert not wanted.is_streamed and not wanted.wants_usage
    (message,) = wanted.path
    assert (message.role, message.content) == (Role.USER, "Hello")


def test_every_control_arrives_under_its_name_and_its_other_names() -> None:
    wanted = read_chat_request(
        body(
            temperature=1,
            top_p=0.5,
            top_k=7.0,
            min_p=0.1,
            presence_penalty=0.3,
            frequency_penalty=-0.3,
            repeat_penalty=1.1,
            seed=3,
            max_completion_tokens=9,
            stop="END",
            ignore_eos=True,
            stream=True,
            stream_options={"include_usage": True},
        ),
        DEFAULTS,
    )
    assert wanted.params == SamplingParams(
        temperature=1.0,
        top_p=0.5,
        top_k=7,
        min_p=0.1,
        presence_penalty=0.3,
        frequency_penalty=-0.3,
        repetition_penalty=1.1,
        seed=3,
        max_tokens=9,
        stop=("END",),
        ignore_eos=True,
    )
    assert wanted.is_streamed and wanted.wants_usage


def test_the_number_of_answers_is_apart_from_how_each_is_picked() -> None:
    wanted = read_chat_request(body(n=3), DEFAULTS)
    assert (wanted.num_answers, wanted.params) == (3, DEFAULTS)
    assert read_chat_request(body(), DEFAULTS).num_answers == 1


def test_what_changes_nothing_may_be_said() -> None:
    fields = {
        "user": "me",
        "n": 1,
        "logprobs": False,
        "logit_bias": {},
        "tools": [],
        "tool_choice": "none",
        "response_format": {"type": "text"},
        "temperature": None,
        "functions": None,
    }
    assert read_chat_request(body(**fields), DEFAULTS).params == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temprature", 1),
        ("n", 0),
        ("n", 33),
        ("n", "2"),
        ("ignore_eos", 1),
        ("samplers", "kpm"),
        ("bad_words", 5),
        ("tools", [{"type": "function"}]),
        ("best_of", 3),
        ("stream", "yes"),
        ("stop", 5),
        ("stop", ["a", 5]),
        ("model", 5),
        ("stream_options", ["x"]),
        ("messages", []),
        ("messages", "Hello"),
    ],
)
def test_a_field_that_would_be_ignored_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"'{name}'"):
        read_chat_request(body(**{name: value}), DEFAULTS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("temperature", '"hot"'),
        ("temperature", "true"),
        ("temperature", "NaN"),
        ("temperature", "1e999"),
        ("temperature", "1" + "0" * 400),
        ("temperature", "-1"),
        ("top_p", "1.5"),
        ("top_k", "2.5"),
        ("top_k", "NaN"),
        ("max_tokens", "Infinity"),
        ("max_tokens", "0"),
        ("seed", "1e300"),
        ("seed", "-2"),
        ("presence_penalty", "[]"),
    ],
)
def test_a_number_out_of_its_range_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidParams, match=name) as raised:
        read_chat_request(body(**{name: json.loads(text)}), DEFAULTS)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("Hello", r"messages\[0\] must be an object"),
        ({"role": "tool", "content": "x"}, r"messages\[0\].role must be one of system"),
        ({"content": "x"}, r"messages\[0\].role"),
        ({"role": "user", "content": 5}, r"messages\[0\].content must be a text"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
            "only have parts of type 'text'",
        ),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, "must be a text"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{}]},
            r"messages\[0\].tool_calls is not supported",
        ),
        ({"role": "user", "content": "x", "name": "Ann"}, r"messages\[0\].name is not supported"),
    ],
)
def test_a_message_that_cannot_be_understood_is_refused_with_its_place(
    message: Any, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_chat_request(body(messages=[message]), DEFAULTS)


def test_parts_of_text_are_one_text_and_roles_have_two_names() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    wanted = read_chat_request(
        body(
            messages=[
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": parts},
                {"role": "assistant", "content": None, "refusal": None, "tool_calls": []},
            ]
        ),
        DEFAULTS,
    )
    assert [(each.role, each.content) for each in wanted.path] == [
        (Role.SYSTEM, "Be brief."),
        (Role.USER, "Hello"),
        (Role.ASSISTANT, ""),
    ]


def test_an_answer_of_ours_can_be_sent_back_with_its_thinking() -> None:
    answer = {"role": "assistant", "content": "Paris.", "reasoning_content": "Hm."}
    wanted = read_chat_request(body(messages=[*HELLO, answer, *HELLO]), DEFAULTS)
    assert (wanted.path[1].content, wanted.path[1].thinking) == ("Paris.", "Hm.")


@pytest.mark.parametrize("found", [None, [], "text", 5])
def test_the_body_must_be_an_object(found: Any) -> None:
    with pytest.raises(UsageError, match="must be a JSON object"):
        read_chat_request(found, DEFAULTS)
