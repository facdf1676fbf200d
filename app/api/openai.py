"""/v1 for other programs: OpenAI's chat completions over the same engine as the page."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.answers import Answers
from app.api.chat_request import ChatRequest, read_chat_request
from app.api.keys import is_key
from app.chat.beam_answers import FoundAnswers, find_answers
from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.logprobs import choices_as_json
from app.chat.thinking import ThinkingSplitter
from app.services import Services
from engine.errors import (
    EngineDead,
    InglenookError,
    ModelError,
    ModelNotFound,
    PromptTooLong,
    TemplateError,
    UsageError,
)
from engine.metrics import Timings
from engine.request import FinishReason, RequestOutput
from engine.tokenizer import Tokenizer

INVALID = "invalid_request_error"
# Ours says more; it stands in `timings.finish`.
FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.ABORT: "stop",
    FinishReason.GRAMMAR_INCOMPLETE: "length",
}


def router(services: Services, key: str) -> APIRouter:
    """The routes. `key` is what a caller must send as a bearer token."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/models")
    async def models(request: Request) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        return JSONResponse({"object": "list", "data": [model_card(services)]})

    @routes.post("/chat/completions")
    async def chat_completions(request: Request) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        try:
            wanted = read_chat_request(await read_json(request), services.settings.sampling)
            model = await services.chat_model()
            prompt = await model.prompt(wanted.path, "", time.time())
            guidance = await model.guidance(wanted.form)
            owner = await services.program_user(wanted.user)
            asked = request_options(owner, num_logprobs=wanted.num_logprobs)
            if wanted.beams is not None:
                searching = asyncio.create_task(
                    find_answers(model, prompt, wanted.beams, wanted.params, asked, guidance)
                )
                # A caller that goes away ends the search.
                with leaving(request, searching.cancel):
                    return JSONResponse(beam_completion(model, await searching))
            answers = Answers(
                lambda params: model.loaded.engine.submit(prompt, params, asked, guidance),
                wanted.params,
                wanted.num_answers,
            )
        except InglenookError as error:
            return failed(error)
        completion = Completion(model, answers, wanted)
        return EventResponse(completion) if wanted.is_streamed else await completion.whole(request)

    @routes.api_route("/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def nothing(request: Request, rest: str) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        sentence = f"There is no {request.method} /v1/{rest} here."
        return JSONResponse(error_body(sentence, INVALID), status_code=404)

    return routes


class Choice:
    """One of the answers of a completion, as far as it has come."""

    def __init__(self, index: int, splitter: ThinkingSplitter, tokenizer: Tokenizer) -> None:
        self.index = index
        self._splitter = splitter
        self._tokenizer = tokenizer
        self._logprobs: list[dict[str, Any]] = []
        self._num_told = 0
        self._content: list[str] = []
        self._thinking: list[str] = []
        self.last: RequestOutput | None = None
        """Its last output, once it has come."""

    def take(self, output: RequestOutput) -> list[dict[str, str]]:
        """What is new, in the shape of OpenAI's deltas."""
        self._logprobs += choices_as_json(output.choices, self._tokenizer)
        pieces = [self._splitter.feed(output.text)]
        if output.finish_reason is not None:
            self.last = output
            pieces.append(self._splitter.finish())
        deltas = []
        for thinking, content in pieces:
            self._thinking.append(thinking)
            self._content.append(content)
            if thinking:
                deltas.append({"reasoning_content": thinking})
            if content:
                deltas.append({"content": content})
        return deltas

    def new_logprobs(self) -> dict[str, Any] | None:
        """Of the tokens that came since the last call."""
        new = self._logprobs[self._num_told :]
        self._num_told = len(self._logprobs)
        return {"content": new} if new else None

    @property
    def timings(self) -> Timings:
        assert self.last is not None and self.last.timings is not None
        return self.last.timings

    @property
    def finish_reason(self) -> str:
        assert self.last is not None and self.last.finish_reason is not None
        return FINISH_REASONS[self.last.finish_reason]

    def as_json(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content)}
        if any(self._thinking):
            message["reasoning_content"] = "".join(self._thinking)
        return {
            "index": self.index,
            "message": message,
            "finish_reason": self.finish_reason,
            "logprobs": {"content": self._logprobs} if self._logprobs else None,
            "timings": self.timings.as_json(),
        }


class Completion:
    """The answers to one request in OpenAI's shape. Owned by the task of its HTTP request."""

    def __init__(self, model: ChatModel, answers: Answers, wanted: ChatRequest) -> None:
        self.answers = answers
        tokenizer = model.loaded.tokenizer
        self._choices = [
            Choice(index, model.splitter(), tokenizer) for index in range(wanted.num_answers)
        ]
        self._wants_usage = wanted.wants_usage
        self._head = completion_head(model)

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events."""
        for choice in self._choices:
            yield self._event(choice, {"role": "assistant", "content": ""})
        try:
            async for number, output in self.answers:
                choice = self._choices[number]
                for delta in choice.take(output):
                    yield self._event(choice, delta)
                if output.finish_reason is not None:
                    timings = choice.timings.as_json()
                    yield self._event(choice, {}, choice.finish_reason, timings=timings)
            if self._wants_usage and all(choice.last for choice in self._choices):
                yield self._line({"choices": [], "usage": self._usage()})
        except InglenookError as error:
            yield f"data: {json.dumps(body_of(error))}\n\n"
        yield "data: [DONE]\n\n"

    async def whole(self, request: Request) -> Response:
        """The answers in one piece. A caller that goes away cancels them."""
        with self.answers, leaving(request, self.answers.abort):
            try:
                async for number, output in self.answers:
                    self._choices[number].take(output)
            except InglenookError as error:
                return failed(error)
        # Who has gone away gets those that there are.
        choices = [choice for choice in self._choices if choice.last is not None]
        return JSONResponse(
            {
                **self._head,
                "object": "chat.completion",
                "choices": [choice.as_json() for choice in choices],
                "usage": self._usage(),
                "timings": choices[0].timings.as_json(),
            }
        )

    def _usage(self) -> dict[str, Any]:
        """The prompt counts once."""
        first, *others = [choice.timings for choice in self._choices if choice.last is not None]
        num_written = first.completion_tokens + sum(each.completion_tokens for each in others)
        return first.usage() | {
            "completion_tokens": num_written,
            "total_tokens": first.prompt_tokens + num_written,
        }

    def _event(
        self, choice: Choice, delta: dict[str, str], finish_reason: str | None = None, **more: Any
    ) -> str:
        piece: dict[str, Any] = {
            "index": choice.index,
            "delta": delta,
            "finish_reason": finish_reason,
        }
        if (logprobs := choice.new_logprobs()) is not None:
            piece["logprobs"] = logprobs
        return self._line({"choices": [piece], **more})

    def _line(self, body: dict[str, Any]) -> str:
        chunk = {**self._head, "object": "chat.completion.chunk", **body}
        return f"data: {json.dumps(chunk)}\n\n"


def beam_completion(model: ChatModel, found: FoundAnswers) -> dict[str, Any]:
    """The answers of a beam search in OpenAI's shape; each choice has its `score`, too."""
    choices = []
    for index, answer in enumerate(found.answers):
        message = {"role": "assistant", "content": answer.content}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        choices.append(
            {
                "index": index,
                "message": message,
                "finish_reason": FINISH_REASONS[answer.beam.finish_reason],
                "logprobs": None,
                "score": answer.beam.score,
                "logprob": answer.beam.logprob,
            }
        )
    return {
        **completion_head(model),
        "object": "chat.completion",
        "choices": choices,
        "usage": found.timings.usage(),
        "timings": found.timings.as_json(),
    }


def completion_head(model: ChatModel) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": model.name,
    }


class EventResponse(StreamingResponse):
    """The events of a completion. A caller that goes away cancels it, however early."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(completion.events(), media_type="text/event-stream")
        self._answers = completion.answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._answers:
            await super().__call__(scope, receive, send)


@contextmanager
def leaving(request: Request, then: Callable[[], object]) -> Iterator[None]:
    """Call `then` when the caller closes the connection inside the `with` block."""

    async def watch() -> None:
        # The body has been read, so the next message is the last.
        while (await request.receive())["type"] != "http.disconnect":
            pass
        then()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


async def read_json(request: Request) -> object:
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The body is not JSON ({error}).") from error


def model_card(services: Services) -> dict[str, Any]:
    created = 0
    with suppress(OSError, ModelNotFound):
        created = int(services.model_path.stat().st_mtime)
    return {
        "id": services.model_name,
        "object": "model",
        "created": created,
        "owned_by": "inglenook",
    }


def error_body(sentence: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": sentence, "type": kind, "param": None, "code": code}}


def body_of(error: InglenookError) -> dict[str, Any]:
    if isinstance(error, PromptTooLong):
        return error_body(str(error), INVALID, "context_length_exceeded")
    return error_body(str(error), INVALID if isinstance(error, UsageError) else "server_error")


def failed(error: InglenookError) -> Response:
    """The error with the status that fits."""
    status = 500
    if isinstance(error, UsageError | PromptTooLong | TemplateError):
        status = 400
    elif isinstance(error, ModelError | EngineDead):
        status = 503
    return JSONResponse(body_of(error), status_code=status)


def refused_key() -> Response:
    sentence = (
        "This needs the key of this Inglenook: send it as 'Authorization: Bearer KEY'. It is"
        " shown in the settings of the page."
    )
    return JSONResponse(error_body(sentence, INVALID, "invalid_api_key"), status_code=401)
