"""Answers as they were written, for the buttons that the page shows with them.

Only the page reaches this: the guard refuses other sites, and an id of an answer cannot be guessed.
"""

import re
from urllib.parse import quote

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from app.chat.answer_form import Medium
from app.chat.message import Message
from app.history.conversations import Conversations
from app.ui.formed import ENDINGS, medium_of
from app.ui.json_text import laid_out
from app.ui.shape import Table, shape_of
from engine.errors import InglenookError

MOST_ROWS = 500
KINDS = {
    Medium.TEXT: "text/plain",
    Medium.JSON: "application/json",
    Medium.CSV: "text/csv",
    Medium.MARKDOWN: "text/markdown",
    Medium.MERMAID: "text/plain",
    Medium.SQL: "application/sql",
}
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*.]+')
LONGEST_NAME = 60


def answers_router(conversations: Conversations) -> APIRouter:
    """`GET /_app/answers/ID`, and what can be seen of it."""
    router = APIRouter(prefix="/_app/answers")

    @router.get("/{answer_id}")
    async def whole(answer_id: str) -> Response:
        """The exact text, as a file."""
        answer = await _answer(conversations, answer_id)
        if answer is None:
            return _gone()
        medium = medium_of(answer)
        title = (await conversations.get(answer.conversation_id)).title
        name = " ".join(UNSAFE.sub(" ", title).split())[:LONGEST_NAME] or "answer"
        file = quote(f"{name}.{ENDINGS[medium]}")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}"}
        return Response(answer.content, headers=headers, media_type=KINDS[medium])

    @router.get("/{answer_id}/laid-out")
    async def for_reading(answer_id: str) -> Response:
        """The text, in lines if it is JSON."""
        answer = await _answer(conversations, answer_id)
        if answer is None:
            return _gone()
        is_json = medium_of(answer) is Medium.JSON
        return PlainTextResponse(laid_out(answer.content) if is_json else answer.content)

    @router.get("/{answer_id}/rows")
    async def rows(answer_id: str, start: int = 0) -> Response:
        """Some rows of a table from `start` on, and how many there are."""
        answer = await _answer(conversations, answer_id)
        if answer is None:
            return _gone()
        shape = shape_of(answer.content, medium_of(answer))
        found = shape.rows if isinstance(shape, Table) else []
        begin = max(start, 0)
        return JSONResponse({"rows": found[begin : begin + MOST_ROWS], "num_rows": len(found)})

    return router


async def _answer(conversations: Conversations, answer_id: str) -> Message | None:
    """None for what is no answer in a form, or is gone."""
    try:
        answer = (await conversations.path(answer_id))[-1]
        # Of a deleted conversation nothing is given out any more.
        await conversations.get(answer.conversation_id)
    except InglenookError:
        return None
    return answer if answer.made_in is not None else None


def _gone() -> Response:
    return PlainTextResponse("This answer is gone: it may have been deleted.", 404)
