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

from app.api.chat_request import ChatRequest, read_chat_request
from app.api.keys import is_key
from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.services import Services
from engine.async_engine import OutputStream
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
from engine.request import FinishReason

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
            stream = model.loaded.engine.submit(
                prompt, wanted.params, request_options(owner), guidance
            )
        except InglenookError as error:
            return failed(error)
        completion = Completion(model, stream, wanted)
        return EventResponse(completion) if wanted.is_streamed else await completion.whole(request)

    @routes.api_route("/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def nothing(request: Request, rest: str) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        sentence = f"There is no {request.method} /v1/{rest} here."
        return JSONResponse(error_body(sentence, INVALID), status_code=404)

    return routes


class Completion:
    """One answer in OpenAI's shape. Owned by the task of its HTTP request."""

    def __init__(self, model: ChatModel, stream: OutputStream, wanted: ChatRequest) -> None:
        self.stream = stream
        self._splitter = model.splitter()
        self._wants_usage = wanted.wants_usage
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.name,
        }

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events."""
        yield self._event({"role": "assistant", "content": ""})
        try:
            async for output in self.stream:
                for delta in self._deltas(output.text, output.finish_reason is not None):
                    yield self._event(delta)
                if output.finish_reason is not None and output.timings is not None:
                    yield self._last_event(output.finish_reason, output.timings)
                    if self._wants_usage:
                        yield self._usage_event(output.timings)
        except InglenookError as error:
            yield f"data: {json.dumps(body_of(error))}\n\n"
        yield "data: [DONE]\n\n"

    async def whole(self, request: Request) -> Response:
        """The answer in one piece. A caller that goes away cancels it."""
        thinking: list[str] = []
        content: list[str] = []
        with self.stream as stream, leaving(request, stream.abort):
            try:
                async for output in stream:
                    for delta in self._deltas(output.text, output.finish_reason is not None):
                        content.append(delta.get("content", ""))
                        thinking.append(delta.get("reasoning_content", ""))
            except InglenookError as error:
                return failed(error)
        assert output.finish_reason is not None and output.timings is not None
        message: dict[str, Any] = {"role": "assistant", "content": "".join(content)}
        if any(thinking):
            message["reasoning_content"] = "".join(thinking)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": FINISH_REASONS[output.finish_reason],
            "logprobs": None,
        }
        return JSONResponse(
            {
                **self._head,
                "object": "chat.completion",
                "choices": [choice],
                "usage": output.timings.usage(),
                "timings": output.timings.as_json(),
            }
        )

    def _deltas(self, text: str, is_last: bool) -> list[dict[str, str]]:
        pieces = [self._splitter.feed(text)]
        if is_last:
            pieces.append(self._splitter.finish())
        deltas = []
        for thinking, content in pieces:
            if thinking:
                deltas.append({"reasoning_content": thinking})
            if content:
                deltas.append({"content": content})
        return deltas

    def _event(self, delta: dict[str, str], finish_reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._line({"choices": [choice], **more})

    def _last_event(self, reason: FinishReason, timings: Timings) -> str:
        return self._event({}, FINISH_REASONS[reason], timings=timings.as_json())

    def _usage_event(self, timings: Timings) -> str:
        return self._line({"choices": [], "usage": timings.usage()})

    def _line(self, body: dict[str, Any]) -> str:
        chunk = {**self._head, "object": "chat.completion.chunk", **body}
        return f"data: {json.dumps(chunk)}\n\n"


class EventResponse(StreamingResponse):
    """The events of a completion. A caller that goes away cancels it, however early."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(completion.events(), media_type="text/event-stream")
        self._stream = completion.stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stream:
            await super().__call__(scope, receive, send)


@contextmanager
def leaving(request: Request, then: Callable[[], None]) -> Iterator[None]:
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
