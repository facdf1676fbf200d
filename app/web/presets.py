"""Presets as files, for the page's Export: other people can import them."""

import re
from urllib.parse import quote

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from app.presets.store import Presets
from engine.errors import InglenookError

UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*.]+')
ENDING = "preset.json"


def presets_router(presets: Presets) -> APIRouter:
    """`GET /_app/presets?name=...`"""
    router = APIRouter(prefix="/_app/presets")

    @router.get("")
    async def one(name: str) -> Response:
        try:
            preset = presets.get(name)
        except InglenookError as error:
            return PlainTextResponse(str(error), 404)
        file = quote(f"{' '.join(UNSAFE.sub(' ', preset.name).split()) or 'a'}.{ENDING}")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{file}"}
        return Response(preset.as_text(), headers=headers, media_type="application/json")

    return router
