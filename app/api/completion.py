"""The answers to one request in OpenAI's shape, in one piece or as they come."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.answers import Answers
from app.api.chat_request import ChatRequest
from app.api.failures import body_of, failed
from app.chat.beam_answers import FoundAnswers
from app.chat.chat_model import ChatModel
from app.chat.guided import Check, Checker
from app.chat.logprobs import choices_as_json
from engine.errors import InglenookError
from engine.metrics import Timings
from engine.request import FinishReason, RequestOutput
from engine.sampling_params import for_answer

# Ours says more; it stands in `timings.finish`.
FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.ABORT: "stop",
    FinishReason.GRAMMAR_INCOMPLETE: "length",
}


class Choice:
    """One of the answers of a completion, as far as it has come."""

    def __init__(self, index: int, model: ChatModel) -> None:
        self.index = index
        self._model = model
        self.check: Check | None = None
        """Whether it is right, where that could not be seen to while it was written."""
        self.begin()

    def begin(self) -> None:
        """Forget what has come: it is asked for again."""
        self._splitter = self._model.splitter()
        self._logprobs: list[dict[str, Any]] = []
        self._num_told = 0
        self._content: list[str] = []
        self._thinking: list[str] = []
        self.last: RequestOutput | None = None
        """Its last output, once it has come."""

    def take(self, output: RequestOutput) -> list[dict[str, str]]:
        """What is new, in the shape of OpenAI's deltas."""
        self._logprobs += choices_as_json(output.choices, self._model.loaded.tokenizer)
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
    def content(self) -> str:
        return "".join(self._content)

    @property
    def is_right(self) -> bool:
        """As far as it was checked."""
        return self.check is None or self.check.is_right

    def said(self) -> dict[str, Any]:
        """What we say beside what OpenAI does: how it ended, and whether it is right."""
        said: dict[str, Any] = {}
        notice = "" if self.last is None else self.last.notice
        if self.check is not None:
            said["check"] = self.check.as_json()
            notice = " ".join(filter(None, (notice, self.check.notice)))
        return said | ({"notice": notice} if notice else {})

    @property
    def finish_reason(self) -> str:
        assert self.last is not None and self.last.finish_reason is not None
        return FINISH_REASONS[self.last.finish_reason]

    def as_json(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if any(self._thinking):
            message["reasoning_content"] = "".join(self._thinking)
        return {
            "index": self.index,
            "message": message,
            "finish_reason": self.finish_reason,
            "logprobs": {"content": self._logprobs} if self._logprobs else None,
            "timings": self.timings.as_json(),
            **self.said(),
        }


class Completion:
    """Owned by the task of its HTTP request.

    What the form of an approximate answer could not enforce is checked at its end. In one piece
    it is asked for again while it is not right; what was streamed cannot be taken back, and is
    only said to be wrong.
    """

    def __init__(
        self, model: ChatModel, answers: Answers, wanted: ChatRequest, checker: Checker
    ) -> None:
        self.answers = answers
        self._params = wanted.params
        self._checker = checker
        self._choices = [Choice(index, model) for index in range(wanted.num_answers)]
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
                    await self._check(choice)
                    more = {"timings": choice.timings.as_json(), **choice.said()}
                    yield self._event(choice, {}, choice.finish_reason, **more)
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
                for choice in self._choices:
                    await self._ask_until_right(choice)
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
                **choices[0].said(),
            }
        )

    async def _ask_until_right(self, choice: Choice) -> None:
        if choice.last is None:
            return
        await self._check(choice)
        for params in self._checker.tries(for_answer(self._params, choice.index))[1:]:
            if choice.is_right or choice.last.finish_reason is FinishReason.ABORT:
                return
            choice.begin()
            async for output in self.answers.ask_again(params):
                choice.take(output)
            await self._check(choice)

    async def _check(self, choice: Choice) -> None:
        choice.check = await self._checker.check(choice.content)

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
