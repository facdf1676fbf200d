"""/v1 as other programs see it: over the app's own routes, and once through OpenAI's client."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from fastapi import FastAPI

from app.api.openai import router
from app.paths import Paths
from engine.errors import EngineError, HistoryError
from engine.guided.grammar import Grammar, GrammarKind
from engine.kv.segment import NOBODY
from engine.logprobs import TokenChoice, TokenLogprob
from engine.request import FinishReason
from tests.fakes_model import FakeEngine, FakeModelServices, FakeStream
from tests.serving import served
from tests.waiting import until

KEY = "secret"
HEADERS = {"Authorization": f"Bearer {KEY}"}
HELLO = {"model": "any", "messages": [{"role": "user", "content": "Hello"}]}
PATH = "/v1/chat/completions"


class Client:
    """The routes without a socket, and the engine behind them."""

    def __init__(self, paths: Paths) -> None:
        self.engine = FakeEngine()
        self.services = FakeModelServices(paths, self.engine)
        self.app = FastAPI()
        self.app.include_router(router(self.services, KEY))
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://app", headers=HEADERS
        )

    async def ask(self, **fields: Any) -> httpx.Response:
        return await self.http.post(PATH, json={**HELLO, **fields})

    async def stream(self, number: int = 0) -> FakeStream:
        await until(lambda: len(self.engine.streams) > number)
        return self.engine.streams[number]


@pytest.fixture
async def client(paths: Paths) -> AsyncIterator[Client]:
    client = Client(paths)
    yield client
    await client.http.aclose()
    await client.services.close()


def events(response: httpx.Response) -> list[Any]:
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def best_effort(schema: Any) -> dict[str, Any]:
    named = {"name": "x", "schema": schema, "strict": False}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


@pytest.mark.parametrize(("script", "num_tries"), [("[1, 2]", 1), ("[1, 1]", 3)])
async def test_an_approximate_answer_is_checked_and_asked_for_again(
    client: Client, script: str, num_tries: int
) -> None:
    client.engine.script = script
    answer = (await client.ask(seed=3, **best_effort({"uniqueItems": True}))).json()
    assert [stream.params.seed for stream in client.engine.streams] == [3, 35, 67][:num_tries]
    assert answer["choices"][0]["message"]["content"] == script
    assert answer["check"]["valid"] == (num_tries == 1)
    assert bool(answer["check"]["fault"]) == (num_tries == 3)
    assert "satisf" in answer["notice"]


@pytest.mark.parametrize("script", ["[1, 2]", "[1, 1]"])
async def test_an_approximate_answer_that_is_streamed_is_checked_at_its_end(
    client: Client, script: str
) -> None:
    client.engine.script = script
    told = events(await client.ask(stream=True, **best_effort({"uniqueItems": True})))
    assert len(client.engine.streams) == 1
    assert told[-1]["check"]["valid"] == (script == "[1, 2]")
    assert not any("check" in event for event in told[:-1])


async def test_a_caller_that_leaves_is_not_answered_again(client: Client) -> None:
    asking = asyncio.create_task(client.ask(**best_effort({"uniqueItems": True})))
    (await client.stream()).end("[1, 1]", FinishReason.ABORT)
    await asking
    assert len(client.engine.streams) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_why_an_answer_was_cut_short_is_said(client: Client, is_streamed: bool) -> None:
    asking = asyncio.create_task(client.ask(stream=is_streamed))
    (await client.stream()).end("[1", FinishReason.GRAMMAR_INCOMPLETE, "It is incomplete.")
    response = await asking
    last = events(response)[-1] if is_streamed else response.json()
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["notice"] == "It is incomplete."


async def test_an_enforced_answer_needs_no_check(client: Client) -> None:
    client.engine.script = "{}"
    answer = (await client.ask(**best_effort({"type": "object"}))).json()
    assert not {"check", "notice"} & answer.keys()


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_without_the_key_nothing_is_told(client: Client, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(client.app), base_url="http://app", headers=headers
    ) as stranger:
        for response in (await stranger.get("/v1/models"), await stranger.post(PATH, json=HELLO)):
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "invalid_api_key"
    assert client.engine.streams == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/embeddings"), ("GET", PATH), ("GET", "/v1/files/x"), ("DELETE", "/v1/models")],
)
async def test_what_is_not_there_is_said_in_their_shape(
    client: Client, method: str, path: str
) -> None:
    response = await client.http.request(method, path)
    assert response.status_code == 404
    assert response.json()["error"]["message"] == f"There is no {method} {path} here."


async def test_the_model_is_listed(client: Client) -> None:
    (card,) = (await client.http.get("/v1/models")).json()["data"]
    assert (card["object"], card["owned_by"]) == ("model", "inglenook")
    assert card["id"]


async def test_an_answer_in_one_piece(client: Client) -> None:
    client.engine.script = "Good day 🙂"
    response = await client.ask()
    answer = response.json()
    assert answer["object"] == "chat.completion"
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Good day 🙂"}
    assert choice["finish_reason"] == "stop"
    usage, timings = answer["usage"], answer["timings"]
    assert usage["completion_tokens"] == len("Good day 🙂".encode())
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}
    assert timings["prefilled_tokens"] == usage["prompt_tokens"] > 0
    assert {"restored_tokens", "ttft_ms", "tpot_ms", "queue_ms", "finish"} <= timings.keys()


async def test_the_form_of_an_answer_reaches_the_engine(client: Client) -> None:
    client.engine.script = "{}"
    assert (await client.ask(response_format={"type": "json_object"})).status_code == 200
    guidance = client.engine.streams[-1].guidance
    assert guidance is not None
    assert guidance.grammar.grammar == Grammar(GrammarKind.JSON_SCHEMA, '{"type": "object"}')
    await client.ask()
    assert client.engine.streams[-1].guidance is None


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}},
        {"structured_outputs": {"regex": "("}},
        {"structured_outputs": {"choice": []}},
        {"grammar": 'root ::= "a" b'},
    ],
    ids=range(4),
)
async def test_a_form_that_cannot_be_kept_to_is_refused_before_anything_is_computed(
    client: Client, fields: dict[str, Any]
) -> None:
    """ggml-org/llama.cpp#24097: such a request was answered without its form."""
    response = await client.ask(**fields)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert client.engine.streams == []


async def test_an_incomplete_form_ended_for_its_length(client: Client) -> None:
    asking = asyncio.create_task(client.ask(response_format={"type": "json_object"}))
    (await client.stream()).end('{"a', FinishReason.GRAMMAR_INCOMPLETE)
    (choice,) = (await asking).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"a', "length")


async def test_an_answer_in_events(client: Client) -> None:
    client.engine.script = "Hi🙂"
    response = await client.ask(stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    first, *middle, last = events(response)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [each["choices"][0]["delta"]["content"] for each in middle] == ["H", "i", "🙂"]
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert last["timings"]["completion_tokens"] == 6
    assert {each["object"] for each in (first, *middle, last)} == {"chat.completion.chunk"}
    assert len({each["id"] for each in (first, *middle, last)}) == 1


async def test_usage_comes_last_when_it_is_asked_for(client: Client) -> None:
    client.engine.script = "Hi"
    response = await client.ask(stream=True, stream_options={"include_usage": True})
    *_, before, last = events(response)
    assert before["choices"][0]["finish_reason"] == "stop"
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("reason", "theirs"),
    [(FinishReason.STOP, "stop"), (FinishReason.LENGTH, "length"), (FinishReason.ABORT, "stop")],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_our_reasons_in_their_words(
    client: Client, reason: FinishReason, theirs: str, streamed: bool
) -> None:
    asking = asyncio.create_task(client.ask(stream=streamed))
    (await client.stream()).end("x", reason)
    response = await asking
    answer = events(response)[-1] if streamed else response.json()
    assert answer["choices"][0]["finish_reason"] == theirs
    assert answer["timings"]["finish"] == reason.value


@pytest.mark.parametrize("streamed", [False, True])
async def test_thinking_has_a_field_of_its_own(client: Client, streamed: bool) -> None:
    client.engine.script = "<think>Hm.</think>Paris."
    response = await client.ask(stream=streamed)
    if streamed:
        deltas = [each["choices"][0]["delta"] for each in events(response)]
    else:
        deltas = [response.json()["choices"][0]["message"]]
    assert "".join(each.get("reasoning_content", "") for each in deltas) == "Hm."
    assert "".join(each.get("content", "") for each in deltas) == "Paris."


async def test_the_controls_reach_the_engine(client: Client) -> None:
    client.engine.script = "x"
    await client.ask(temperature=0, max_tokens=3, stop=["END", "\n"], seed=7)
    params = client.engine.streams[0].params
    assert (params.temperature, params.max_tokens, params.seed) == (0.0, 3, 7)
    assert params.stop == ("END", "\n")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be a JSON object"),
        (json.dumps({**HELLO, "temprature": 1}).encode(), "'temprature'"),
        (json.dumps({**HELLO, "\ud800": 1}).encode(), "is not supported"),
        (json.dumps({**HELLO, "temperature": 9}).encode(), "temperature must be between"),
        (json.dumps({"messages": [{"role": "user", "content": " "}]}).encode(), "write one first"),
    ],
)
async def test_wrong_use_is_one_sentence(client: Client, body: bytes, words: str) -> None:
    response = await client.http.post(PATH, content=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert words in error["message"]
    assert error["type"] == "invalid_request_error"
    assert client.engine.streams == []


async def test_half_a_character_does_no_harm(client: Client) -> None:
    client.engine.script = "x"
    body = json.dumps({"messages": [{"role": "user", "content": "\ud83d"}]})
    assert (await client.http.post(PATH, content=body)).status_code == 200


async def test_a_prompt_that_does_not_fit_is_told_with_its_counts(client: Client) -> None:
    long = [{"role": "user", "content": "x" * 5000}]
    response = await client.ask(messages=long, stream=True)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert "the context holds 4,096" in error["message"]


async def test_a_dead_engine_is_a_sentence(client: Client) -> None:
    client.engine.is_dead = True
    response = await client.ask()
    assert response.status_code == 503
    assert "restart" in response.json()["error"]["message"]


async def test_a_model_that_cannot_be_loaded_is_a_sentence(paths: Paths) -> None:
    from app.services import Services

    services = Services(paths, "/nowhere/model.gguf")
    app = FastAPI()
    app.include_router(router(services, KEY))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://app", headers=HEADERS
    ) as http:
        response = await http.post(PATH, json=HELLO)
        assert response.status_code == 503
        assert "There is no model file at /nowhere/model.gguf" in response.text
        assert (await http.get("/v1/models")).json()["data"][0]["id"] == "model"
    await services.close()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_failure_in_the_middle_is_told(client: Client, streamed: bool) -> None:
    asking = asyncio.create_task(client.ask(stream=streamed))
    stream = await client.stream()
    stream.write("Half")
    stream.fail(EngineError("The model could not compute this answer."))
    response = await asking
    if streamed:
        assert response.status_code == 200
        error = events(response)[-1]["error"]
    else:
        assert response.status_code == 500
        error = response.json()["error"]
    assert error["message"] == "The model could not compute this answer."
    assert error["type"] == "server_error"


async def test_requests_at_once_do_not_mix(client: Client) -> None:
    asking = [
        asyncio.create_task(client.ask(messages=[{"role": "user", "content": f"Say {number}"}]))
        for number in range(4)
    ]
    await client.stream(3)
    tokenizer = (await client.services.chat_model()).loaded.tokenizer
    for stream in reversed(client.engine.streams):
        said = b"".join(map(tokenizer.token_bytes, stream.prompt)).decode()
        stream.end(said[said.index("Say ") + 4])
    answers = [(await each).json() for each in asking]
    contents = [each["choices"][0]["message"]["content"] for each in answers]
    assert contents == ["0", "1", "2", "3"]


# With a real server, since only that one has connections to close


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_caller_who_goes_away_ends_the_answer(
    client: Client, streamed: bool, has_begun: bool
) -> None:
    async with served(lambda port: client.app) as url, httpx.AsyncClient(headers=HEADERS) as http:
        body = {**HELLO, "stream": streamed}
        asking = asyncio.create_task(http.post(url + PATH, json=body))
        stream = await client.stream()
        if has_begun:
            stream.write("Half")
            await asyncio.sleep(0.02)
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: stream.is_aborted)
        assert client.engine.num_running == 0


async def test_openais_own_client_understands_us(client: Client) -> None:
    client.engine.script = "<think>Hm.</think>Good day"
    async with (
        served(lambda port: client.app) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as theirs,
    ):
        ask = theirs.chat.completions.create
        messages: Any = HELLO["messages"]
        (model,) = (await theirs.models.list()).data
        whole = await ask(model=model.id, messages=messages, stop=["END"], seed=1)
        assert whole.choices[0].message.content == "Good day"
        assert whole.usage is not None and whole.usage.prompt_tokens_details is not None
        assert whole.usage.prompt_tokens_details.cached_tokens == 0

        text, usage = "", None
        async for chunk in await ask(
            model=model.id, messages=messages, stream=True, stream_options={"include_usage": True}
        ):
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
            usage = chunk.usage
        assert text == "Good day"
        assert usage is not None and usage.completion_tokens > 0

        with pytest.raises(openai.BadRequestError, match="'best_of'"):
            await ask(model=model.id, messages=messages, extra_body={"best_of": 2})
        long: Any = [{"role": "user", "content": "x" * 5000}]
        with pytest.raises(openai.BadRequestError, match="context holds"):
            await ask(model=model.id, messages=long)
        with pytest.raises(openai.AuthenticationError, match="key of this Inglenook"):
            await theirs.with_options(api_key="wrong").models.list()
        # A client that stops reading a stream closes it.
        client.engine.script = None
        stream = await ask(model=model.id, messages=messages, stream=True)
        await stream.close()
        await until(lambda: client.engine.num_running == 0)


async def test_a_named_user_owns_what_is_read_and_a_nameless_one_leaves_nothing(
    client: Client,
) -> None:
    client.engine.script = "Hi"
    await client.ask(user="ann@example.com")
    await client.ask(user="ann@example.com")
    await client.ask()
    ann, again, nobody = (stream.options.belonging for stream in client.engine.streams)
    assert ann == again
    assert ann.is_durable
    assert "ann" not in ann.owner
    assert nobody == NOBODY
    assert await client.services.programs.owners() == [ann.owner]


async def test_a_user_that_is_no_text_is_refused(client: Client) -> None:
    response = await client.ask(user=5)
    assert response.status_code == 400
    assert "'user' must be a text" in response.json()["error"]["message"]


async def test_a_user_that_cannot_be_noted_is_answered_all_the_same(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(owner: str) -> None:
        raise HistoryError("There is no room left.")

    monkeypatch.setattr(client.services.programs, "note", refuse)
    client.engine.script = "Hi"
    assert (await client.ask(user="ann")).status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_several_answers_are_choices_with_their_numbers(
    client: Client, streamed: bool
) -> None:
    asking = asyncio.create_task(
        client.ask(n=3, seed=4, stream=streamed, stream_options={"include_usage": True})
    )
    (await client.stream(0)).write("one")
    for number in (2, 1):
        stream = await client.stream(number)
        assert (stream.params.seed, stream.prompt) == (4 + number, client.engine.streams[0].prompt)
        stream.end(f"answer {number}", FinishReason.LENGTH)
    client.engine.streams[0].end(" more")
    response = await asking
    if streamed:
        *pieces, last = events(response)
        texts = ["", "", ""]
        for piece in pieces:
            (choice,) = piece["choices"]
            texts[choice["index"]] += choice["delta"].get("content", "")
        usage = last["usage"]
    else:
        choices = response.json()["choices"]
        assert [each["index"] for each in choices] == [0, 1, 2]
        assert [each["finish_reason"] for each in choices] == ["stop", "length", "length"]
        texts = [each["message"]["content"] for each in choices]
        usage = response.json()["usage"]
    assert texts == ["one more", "answer 1", "answer 2"]
    assert usage["completion_tokens"] == len("".join(texts))
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_a_token_that_the_model_does_not_have_is_refused(client: Client) -> None:
    response = await client.ask(logit_bias={"5": 200})
    assert response.status_code == 400
    assert "between -100 and 100" in response.json()["error"]["message"]


async def test_likelihoods_are_told_where_they_are_asked_for(client: Client) -> None:
    asking = asyncio.create_task(client.ask(logprobs=True, top_logprobs=1))
    stream = await client.stream()
    assert stream.options.num_logprobs == 1
    choice = TokenChoice(TokenLogprob(72, -0.5), (TokenLogprob(72, -0.5),))
    stream.write("H", (choice,))
    stream.end()
    content = (await asking).json()["choices"][0]["logprobs"]["content"]
    told = {"token": "H", "logprob": -0.5, "bytes": [72]}
    assert content == [told | {"top_logprobs": [told]}]


async def test_likelihoods_come_with_the_events_of_their_tokens(client: Client) -> None:
    asking = asyncio.create_task(client.ask(logprobs=True, stream=True))
    stream = await client.stream()
    assert stream.options.num_logprobs == 0
    for letter in "Hi":
        stream.write(letter, (TokenChoice(TokenLogprob(ord(letter), -0.25)),))
    stream.end()
    told = [
        token["token"]
        for event in events(await asking)
        for choice in event["choices"]
        for token in (choice.get("logprobs") or {"content": []})["content"]
    ]
    assert told == ["H", "i"]


@pytest.mark.parametrize(
    "fields",
    [{"top_logprobs": 3}, {"logprobs": True, "top_logprobs": 21}, {"logprobs": 1}],
)
async def test_likelihoods_that_cannot_be_told_are_refused(
    client: Client, fields: dict[str, Any]
) -> None:
    answer = await client.ask(**fields)
    assert answer.status_code == 400
    assert "logprobs" in answer.json()["error"]["message"]
