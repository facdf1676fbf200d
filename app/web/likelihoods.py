"""How sure the model was of the tokens of an answer, for the page's sheet that shows it.

Only the page reaches this: the guard refuses other sites, and an id of an answer cannot be guessed.
"""

from collections.abc import Callable

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from app.history.conversations import Conversations
from app.ui.sure import tokens_of
from engine.errors import InglenookError


def likelihoods_router(conversations: Conversations, model_name: Callable[[], str]) -> APIRouter:
    """`GET /_app/likelihoods/ID`"""
    router = APIRouter(prefix="/_app/likelihoods")

    @router.get("/{answer_id}")
    async def tokens(answer_id: str) -> Response:
        try:
            answer = (await conversations.path(answer_id))[-1]
            # Of a deleted conversation nothing is given out any more.
            await conversations.get(answer.conversation_id)
        except InglenookError:
            return PlainTextResponse("This answer is gone: it may have been deleted.", 404)
        if answer.likelihoods is None:
            return PlainTextResponse("Of this answer it is not known how sure the model was.", 404)
        return JSONResponse(tokens_of(answer, model_name()))

    return router
