"""Carry out a command of the same user for another process, in the process that owns the home.

The caller proves itself with the token in the owner's note, which only this user can read.
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.owner import TOKEN_HEADER
from app.services import Services
from engine.errors import InglenookError, UsageError


class LineConsole:
    """What the command says, as lines that travel: `{"out": ...}`, `{"note": ...}`."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write(self, text: str) -> None:
        self.lines.put_nowait({"out": text})

    def note(self, text: str) -> None:
        self.lines.put_nowait({"note": text})


def router(services: Services, token: str) -> APIRouter:
    routes = APIRouter(prefix="/_app")

    def is_owner(request: Request) -> bool:
        given = request.headers.get(TOKEN_HEADER, "")
        return hmac.compare_digest(given.encode(), token.encode())

    @routes.get("/ping")
    async def ping(request: Request) -> Response:
        return PlainTextResponse(
            "ok" if is_owner(request) else "no", 200 if is_owner(request) else 403
        )

    @routes.get("/engine")
    async def engine(request: Request) -> Response:
        if not is_owner(request):
            return PlainTextResponse("no", 403)
        return JSONResponse(services.activity())

    @routes.post("/command")
    async def command(request: Request) -> Response:
        if not is_owner(request):
            return PlainTextResponse("This needs the token of the home's owner.", 403)
        options = Options(**json.loads(await request.body()))
        return StreamingResponse(run_lines(services, options), media_type="application/x-ndjson")

    return routes


async def run_lines(services: Services, options: Options) -> AsyncIterator[str]:
    """The command's lines and last `{"exit": code}`; closing the iterator cancels it."""
    console = LineConsole()

    async def run() -> None:
        code = 0
        try:
            await carry_out(services, options, console)
        except InglenookError as error:
            code = 2 if isinstance(error, UsageError) else 1
            console.note(str(error))
        finally:
            console.lines.put_nowait({"exit": code})

    task = asyncio.create_task(run())
    try:
        while True:
            line = await console.lines.get()
            yield json.dumps(line, ensure_ascii=False) + "\n"
            if "exit" in line:
                break
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
