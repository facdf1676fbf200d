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

from app.commands.carry_out import COMMANDS, carry_out
from app.commands.options import Options
from app.owner import TOKEN_HEADER, proof
from app.services import Services
from engine.errors import InglenookError, UsageError

NOT_THE_OWNER = "This needs the token of the home's owner."
UNEXPECTED = "Something unexpected happened in the running app; its log has the details."


class LineConsole:
    """What the command says, as lines that travel: `{"out": ...}`, `{"note": ...}`,
    `{"progress": ...}`."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write(self, text: str) -> None:
        self.lines.put_nowait({"out": text})

    def note(self, text: str) -> None:
        self.lines.put_nowait({"note": text})

    def progress(self, text: str) -> None:
        self.lines.put_nowait({"progress": text})


def router(services: Services, token: str) -> APIRouter:
    routes = APIRouter(prefix="/_app")

    def is_owner(request: Request) -> bool:
        given = request.headers.get(TOKEN_HEADER, "")
        return hmac.compare_digest(given.encode(), token.encode())

    @routes.get("/ping")
    async def ping(nonce: str = "") -> Response:
        return PlainTextResponse(proof(token, nonce))

    @routes.get("/engine")
    async def engine(request: Request) -> Response:
        if not is_owner(request):
            return PlainTextResponse(NOT_THE_OWNER, 403)
        return JSONResponse(services.activity())

    @routes.post("/command")
    async def command(request: Request) -> Response:
        if not is_owner(request):
            return PlainTextResponse(NOT_THE_OWNER, 403)
        try:
            options = Options.from_json(json.loads(await request.body()))
        except (ValueError, TypeError, RecursionError):
            return PlainTextResponse("This is no command.", 400)
        if options.command not in COMMANDS:
            return PlainTextResponse("There is no such command.", 400)
        return StreamingResponse(run_lines(services, options), media_type="application/x-ndjson")

    return routes


async def run_lines(services: Services, options: Options) -> AsyncIterator[str]:
    """The command's lines and last `{"exit": code}`; closing the iterator cancels it."""
    console = LineConsole()

    async def run() -> None:
        code = None
        try:
            await carry_out(services, options, console)
            code = 0
        except InglenookError as error:
            code = 2 if isinstance(error, UsageError) else 1
            console.note(str(error))
        finally:
            if code is None:
                console.note(UNEXPECTED)
            console.lines.put_nowait({"exit": 1 if code is None else code})

    task = asyncio.create_task(run())
    try:
        while True:
            line = await console.lines.get()
            yield json.dumps(line) + "\n"
            if "exit" in line:
                break
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
