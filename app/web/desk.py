"""The doors of a sheet's desk: what the page asks for, acts on, and hands over.

No other site reaches them: the guard refuses those. What acts is taken only with an Origin, which
each page sends along, and the guard lets none pass but the app's own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.requests import ClientDisconnect

from app.visible import visible
from app.web.asked import NO_WORDS, is_sound
from engine.errors import InglenookError

Action = Callable[[dict[str, Any]], Awaitable[Any]]
"""Gives what can be written as JSON, or a whole response."""
NOT_THE_PAGE = "Only the app's own page may do this."


class Desk(Protocol):
    """What can be done, by its name, and what takes a file."""

    def actions(self) -> dict[str, Action]: ...

    async def drop(self, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> Any: ...


def add_doors(router: APIRouter, desk: Desk) -> None:
    """`POST drop` with a file as its body, and `POST ACTION` with a JSON object as its."""
    actions = desk.actions()

    @router.post("/drop")
    async def drop(name: str, request: Request) -> Response:
        """The file goes to its place as it comes."""
        if "origin" not in request.headers:
            return PlainTextResponse(NOT_THE_PAGE, 403)
        length = request.headers.get("content-length", "")
        if not length.isdecimal():
            return PlainTextResponse("The length of the file is needed.", 411)
        try:
            return await answered(desk.drop(name, int(length), request.stream()))
        except ClientDisconnect:
            # Given up, or the page is gone: nobody reads this.
            return Response(status_code=400)

    @router.post("/{action}")
    async def act(action: str, request: Request) -> Response:
        if "origin" not in request.headers:
            return PlainTextResponse(NOT_THE_PAGE, 403)
        if action not in actions:
            return PlainTextResponse("There is nothing of this name to be done.", 404)
        try:
            given = await request.json()
        except (ValueError, RecursionError):
            return PlainTextResponse("This is no JSON.", 400)
        if not isinstance(given, dict):
            return PlainTextResponse("This is no JSON object.", 400)
        if not is_sound(given):
            return PlainTextResponse(NO_WORDS, 400)
        return await answered(actions[action](given))


async def answered(asked: Awaitable[Any]) -> Response:
    """What came, or under `refused` the sentence that says why it did not."""
    try:
        came = await asked
    except InglenookError as error:
        # No failure of the app: a browser would write one into its console.
        return JSONResponse({"refused": visible(str(error))})
    except OSError as error:
        # Such as a name that is longer than any of this disk.
        sentence = f"This could not be done: {error.strerror or error}."
        return JSONResponse({"refused": sentence})
    return came if isinstance(came, Response) else JSONResponse(came)
