"""/v1 for other programs: OpenAI's chat completions over the same engine as the page."""

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from app.api.answers import Answers
from app.api.chat_request import read_chat_request
from app.api.completion import Completion, EventResponse, beam_completion, leaving
from app.api.failures import INVALID, error_body, failed, refused_key
from app.api.keys import is_key
from app.chat.beam_answers import find_answers
from app.chat.belonging import request_options
from app.chat.guided import Checker
from app.services import Services
from engine.errors import InglenookError, ModelNotFound, UsageError


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
        completion = Completion(model, answers, wanted, Checker(guidance))
        return EventResponse(completion) if wanted.is_streamed else await completion.whole(request)

    @routes.api_route("/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def nothing(request: Request, rest: str) -> Response:
        if not is_key(key, request.headers.get("authorization")):
            return refused_key()
        sentence = f"There is no {request.method} /v1/{rest} here."
        return JSONResponse(error_body(sentence, INVALID), status_code=404)

    return routes


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
        "id": services.model.name,
        "object": "model",
        "created": created,
        "owned_by": "inglenook",
    }
