"""Pictures and sounds: taken in for the page, and shown to it.

Only the page reaches this: the guard refuses other sites, what takes something in wants the page's
own Origin, and no id can be guessed.
"""

import asyncio
from pathlib import PurePath

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from app.media.attachment import AUDIO_SUFFIXES, Attachment, attachment_of
from app.media.reading import MOST_FILE_BYTES
from app.ui.room import Services
from engine.errors import InglenookError, UsageError
from engine.media import MediaKind

LONGEST_NAME = 120


def attachments_router(services: Services) -> APIRouter:
    """`POST /_app/attachments?name=...` with a file as body gives an id;
    `GET /_app/attachments/new/ID/preview` and `.../MESSAGE_ID/NUMBER/preview` show a small
    picture, `.../whole` all of what is kept."""
    router = APIRouter(prefix="/_app/attachments")

    @router.post("")
    async def add(request: Request, name: str = "") -> Response:
        if "origin" not in request.headers:
            return PlainTextResponse("Only the app's own page may do this.", 403)
        shown = PurePath(name.replace("\\", "/")).name[:LONGEST_NAME] or "picture"
        is_sound = shown.lower().endswith(AUDIO_SUFFIXES)
        kind = MediaKind.AUDIO if is_sound else MediaKind.IMAGE
        try:
            data = await _body(request, MOST_FILE_BYTES[kind], shown)
            await services.check_readable(kind)
            attachment = await asyncio.to_thread(attachment_of, data, kind, shown)
        except InglenookError as error:
            return PlainTextResponse(str(error), 400)
        return JSONResponse({"id": services.pending.add(attachment)})

    @router.get("/new/{number}/preview")
    async def new_preview(number: str) -> Response:
        return _preview(services.pending.get(number))

    @router.get("/{message_id}/{number}/preview")
    async def preview(message_id: str, number: int) -> Response:
        return _preview(await _stored(services, message_id, number))

    @router.get("/{message_id}/{number}/whole")
    async def whole(message_id: str, number: int) -> Response:
        found = await _stored(services, message_id, number)
        if found is None:
            return _gone()
        try:
            content = await asyncio.to_thread(found.read)
        except InglenookError:
            return _gone()
        return Response(content, media_type=found.media_type)

    return router


async def _body(request: Request, most: int, name: str) -> bytes:
    """Raises UsageError before more than `most` bytes are in memory."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise UsageError(
                f"{name} has more than {most / 1e6:,.0f} MB, which is the most: send a smaller one."
            )
    return bytes(data)


async def _stored(services: Services, message_id: str, number: int) -> Attachment | None:
    try:
        message = (await services.conversations.path(message_id))[-1]
        # Of a deleted conversation nothing is given out any more.
        await services.conversations.get(message.conversation_id)
    except InglenookError:
        return None
    held = message.attachments
    return held[number] if 0 <= number < len(held) else None


def _preview(attachment: Attachment | None) -> Response:
    if attachment is None or not attachment.preview:
        return _gone()
    return Response(attachment.preview, media_type="image/jpeg")


def _gone() -> Response:
    return PlainTextResponse("This picture is gone: its conversation may have been deleted.", 404)
