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
from app.chat.guided import Check, Checker
from app.chat.written import read_whole
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
from engine.request import FinishReason
from engine.sampling_params import SamplingParams

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
            checker = Checker(guidance)
            options = request_options(await services.program_user(wanted.user))

            def submit(params: SamplingParams) -> OutputStream:
                return model.loaded.engine.submit(prompt, params, options, guidance)

            stream = submit(wanted.params)
        except InglenookError as error:
            return failed(error)
        completion = Completion(model, stream, wanted, checker, submit)
        return EventResponse(completion) if wanted.is_streamed else await completion.whole(request)

    @routes.api_route("/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def nothing(request: Request, rest: str) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        sentence = f"There is no {request.method} /v1/{rest} here."
        return JSONResponse(error_body(sentence, INVALID), status_code=404)

    return routes


class Completion:
    """One answer in OpenAI's shape. Owned by the task of its HTTP request.

    What the form of an approximate answer could not enforce is checked at its end. In one piece
    it is asked for again while it is not right; what was streamed cannot be taken back, and is
    only said to be wrong.
    """

    def __init__(
        self,
        model: ChatModel,
        stream: OutputStream,
        wanted: ChatRequest,
        checker: Checker,
        submit: Callable[[SamplingParams], OutputStream],
    ) -> None:
        self.stream = stream
        self._model = model
        self._wanted = wanted
        self._checker = checker
        self._submit = submit
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.name,
        }

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events."""
        yield self._event({"role": "assistant", "content": ""})
        splitter = self._model.splitter()
        content = ""
        try:
            async for output in self.stream:
                pieces = [splitter.feed(output.text)]
                if output.finish_reason is not None:
                    pieces.append(splitter.finish())
                for thought, answer in pieces:
                    content += answer
                    if thought:
                        yield self._event({"reasoning_content": thought})
                    if answer:
                        yield self._event({"content": answer})
            reason, timings = output.finish_reason, output.timings
            assert reason is not None and timings is not None
            check = await self._check(content)
            more = {"timings": timings.as_json(), **_said(output.notice, check)}
            yield self._event({}, FINISH_REASONS[reason], **more)
            if self._wanted.wants_usage:
                yield self._line({"choices": [], "usage": timings.usage()})
        except InglenookError as error:
            yield f"data: {json.dumps(body_of(error))}\n\n"
        yield "data: [DONE]\n\n"

    async def whole(self, request: Request) -> Response:
        """The answer in one piece. A caller that goes away cancels it."""
        try:
            for params in self._checker.tries(self._wanted.params):
                stream = self.stream if params is self._wanted.params else self._submit(params)
                with stream, leaving(request, stream.abort):
                    written = await read_whole(stream, self._model.splitter())
                check = await self._check(written.content)
                if check is None or not check.fault or written.finish_reason is FinishReason.ABORT:
                    break
        except InglenookError as error:
            return failed(error)
        message: dict[str, Any] = {"role": "assistant", "content": written.content}
        if written.thinking:
            message["reasoning_content"] = written.thinking
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": FINISH_REASONS[written.finish_reason],
            "logprobs": None,
        }
        return JSONResponse(
            {
                **self._head,
                "object": "chat.completion",
                "choices": [choice],
                "usage": written.timings.usage(),
                "timings": written.timings.as_json(),
                **_said(written.notice, check),
            }
        )

    async def _check(self, content: str) -> Check | None:
        # A pattern of somebody else's may take its time.
        return await asyncio.to_thread(self._checker.check, content)

    def _event(self, delta: dict[str, str], finish_reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._line({"choices": [choice], **more})

    def _line(self, body: dict[str, Any]) -> str:
        chunk = {**self._head, "object": "chat.completion.chunk", **body}
        return f"data: {json.dumps(chunk)}\n\n"


def _said(notice: str, check: Check | None) -> dict[str, Any]:
    """What we say beside what OpenAI does: how an answer ended, and whether it is right."""
    said: dict[str, Any] = {}
    if check is not None:
        said["check"] = check.as_json()
    notices = " ".join(filter(None, (notice, check.notice if check else "")))
    return said | ({"notice": notices} if notices else {})


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
