"""What the page asks of the launcher: to quit, to start again, to show a folder or the report.

Only the page reaches what ends the app: the guard asks for its Origin.
"""

import hmac
from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from app.amounts import counted
from app.launch.folder import show_folder
from app.launch.link import Link, end_this_process
from app.launch.report import crash_report
from app.launch.wish import Wish
from app.owner import TOKEN_HEADER
from app.paths import Paths
from app.services import Services

BUSY = 409
NO_LAUNCHER = "This Inglenook was started in a terminal: end it there, and start it again."


def router(
    services: Services,
    paths: Paths,
    token: str,
    link: Link | None,
    end: Callable[[], None] = end_this_process,
) -> APIRouter:
    routes = APIRouter(prefix="/_app")

    @routes.post("/quit")
    async def quit_app(anyway: bool = False) -> Response:
        """Refused while something is written, unless that is known."""
        activity = services.activity()
        num_starting = services.jobs.num_starting
        num_writing = max(
            activity["jobs"] - num_starting, activity["running"] + activity["waiting"]
        )
        sentences = [
            _written(num_writing) if num_writing else "",
            _not_stored(num_starting) if num_starting else "",
        ]
        if any(sentences) and not anyway:
            return JSONResponse({"writing": " ".join(filter(None, sentences))}, BUSY)
        if link is None:
            end()
        else:
            link.ask(Wish.QUIT)
        return JSONResponse({"wish": Wish.QUIT.value})

    @routes.post("/restart")
    async def restart(safe: bool = False) -> Response:
        if link is None:
            return PlainTextResponse(NO_LAUNCHER, BUSY)
        wish = Wish.SAFE if safe else Wish.RESTART
        link.ask(wish)
        return JSONResponse({"wish": wish.value})

    @routes.post("/logs")
    async def logs() -> Response:
        show_folder(paths.logs)
        return JSONResponse({"wish": Wish.LOGS.value})

    @routes.get("/report")
    async def report() -> Response:
        return PlainTextResponse(crash_report(paths))

    @routes.post("/show")
    async def show(request: Request) -> Response:
        """For a second click, which proves with the token that it is the same user."""
        given = request.headers.get(TOKEN_HEADER, "")
        if link is None or not hmac.compare_digest(given.encode(), token.encode()):
            return PlainTextResponse("There is no window to show.", 403)
        link.ask(Wish.SHOW)
        return JSONResponse({"wish": Wish.SHOW.value})

    return routes


def _written(number: int) -> str:
    verb = "is" if number == 1 else "are"
    return f"{counted(number, 'answer')} {verb} being written. What is written so far will be kept."


def _not_stored(number: int) -> str:
    it = "waits for the model, and is" if number == 1 else "wait for the model, and are"
    return f"{counted(number, 'message')} {it} not stored yet."
