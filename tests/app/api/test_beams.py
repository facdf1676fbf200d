"""`n_beams` at /v1: what a caller gets, and what is refused."""

import asyncio
from typing import Any

import pytest

from tests.app.api.test_openai import Client, client  # noqa: F401 - a fixture

BODY = {"n_beams": 2, "n": 2, "max_tokens": 2}


async def test_the_best_answers_come_with_their_scores(client: Client) -> None:  # noqa: F811
    asking = asyncio.create_task(client.ask(**BODY, length_penalty=0.0))
    first = await client.stream(0)
    assert first.options.num_candidates >= 4
    first.look_ahead(("a", -0.1), ("b", -2.5))
    for number, letters in ((1, "cd"), (2, "ef")):
        stream = await client.stream(number)
        assert len(stream.beginning) == 1
        assert stream.prompt == first.prompt
        stream.look_ahead((letters[0], -0.5), (letters[1], -3.0))
    body = (await asking).json()
    assert [each["message"]["content"] for each in body["choices"]] == ["ac", "be"]
    assert [each["score"] for each in body["choices"]] == pytest.approx([-0.6, -3.0])
    assert [each["finish_reason"] for each in body["choices"]] == ["length", "length"]
    assert body["usage"]["completion_tokens"] == 4
    assert body["object"] == "chat.completion" and body["id"].startswith("chatcmpl-")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"n_beams": 0}, "n_beams"),
        ({"n_beams": 2, "n": 3}, "n_beams"),
        ({"n_beams": 2, "temperature": 0.5}, "temperature"),
        ({"n_beams": 2, "top_k": 5, "seed": 1}, "seed, top_k"),
        ({"n_beams": 2, "stream": True}, "stream"),
        ({"n_beams": 2, "logprobs": True}, "logprobs"),
        ({"n_beams": 2, "early_stopping": "soon"}, "early_stopping"),
        ({"n_beams": 2, "length_penalty": "long"}, "length_penalty"),
        ({"length_penalty": 1.0}, "n_beams"),
        ({"early_stopping": True}, "n_beams"),
    ],
)
async def test_what_would_have_no_effect_or_no_sense_is_refused(
    client: Client,  # noqa: F811
    fields: dict[str, Any],
    word: str,
) -> None:
    answer = await client.ask(**fields)
    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert not client.engine.streams


async def test_a_form_that_is_only_approximate_is_refused(client: Client) -> None:  # noqa: F811
    body = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": body}}
    answer = await client.ask(n_beams=2, response_format=form)
    assert answer.status_code == 400
