"""The web server: our FastAPI with the page mounted in it, behind the guard, on a bound socket."""

import asyncio
import contextlib
import logging
import secrets
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.ui.room import Services
from app.web import environment
from app.web.answers import answers_router
from app.web.attachments import attachments_router
from app.web.documents import documents_router
from app.web.guard import Guard, local_hosts
from app.web.likelihoods import likelihoods_router
from app.web.models import models_router
from app.web.presets import presets_router

MANIFEST = {
    "name": "Inglenook",
    "start_url": "/",
    "display": "browser",
    "icons": [{"src": "/favicon.ico", "sizes": "any", "type": "image/svg+xml"}],
}
GRACE_S = 1
"""How long open streams may go on after the server was told to end."""


def build(services: Services, port: int, cache: Path, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """The app without its guard. `routers` come first, the page takes the rest."""
    environment.prepare(cache)
    # Gradio reads the environment at import, so it is imported here and not above.
    import gradio as gr

    from app.ui import page, theme

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    instance = secrets.token_hex(8)

    @app.get("/_app/state")
    async def state() -> dict[str, str | int | bool]:
        """Whether the app is there, whether it is still the same one, whether a conversation has
        gone on somewhere, and what can be shown to its model."""
        return {
            "instance": instance,
            "turns": services.conversations.num_turns,
            "sees": services.senses.sees,
            "hears": services.senses.hears,
        }

    own = (
        answers_router(services.conversations),
        presets_router(services.presets),
        models_router(services),
        documents_router(services),
        attachments_router(services),
        likelihoods_router(services.conversations, lambda: services.model.name),
    )

    @app.get("/manifest.json")
    async def manifest() -> Response:
        """Gradio's page links it. To be started it needs more than a browser, so it stays there."""
        return JSONResponse(MANIFEST, media_type="application/manifest+json")

    for router in (*own, *routers):
        app.include_router(router)
    gr.mount_gradio_app(
        app,
        page.build(services),
        path="/",
        server_name="127.0.0.1",
        server_port=port,
        app_kwargs={"openapi_url": None, "docs_url": None, "redoc_url": None},
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        mcp_server=False,
        ssr_mode=False,
        pwa=False,
        show_error=True,
        allowed_paths=[],
        max_file_size="1kb",
        favicon_path=str(page.STATIC / "icon.svg"),
        theme=theme.theme(),
        head=page.head(),
    )
    return app


def quiet_when_cut(app: ASGIApp) -> ASGIApp:
    """Nothing more is said to who asked, once the answer is cut off at the end.

    Gradio would still tell the page why, in the words of a library: with the places of files.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None

        async def send_while_wanted(message: Message) -> None:
            if not task.cancelling():
                await send(message)

        await app(scope, receive, send_while_wanted)

    return call


class _Server(uvicorn.Server):
    """Leaves the signals to `serve`: uvicorn's way ends the process before we have cleaned up."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    on_ready: Callable[[], None] = lambda: None,
    hosts: Sequence[str] = (),
) -> None:
    """Answer on `sock` until SIGINT, SIGTERM or cancellation; open streams are ended.

    `hosts` are names besides this machine's own that a browser may use, with their port; a proxy
    that has them may speak https.
    """
    port = sock.getsockname()[1]
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)
    config = uvicorn.Config(
        quiet_when_cut(Guard(app, local_hosts(port), hosts)),
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config)
    with _stopped_by_signals(server):
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            while not server.started and not serving.done():
                await asyncio.sleep(0.005)
            if not serving.done():
                on_ready()
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await serving
            sock.close()


@contextlib.contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Generator[None, None, None]:
    def stop(*_: object) -> None:
        server.should_exit = True

    names = (signal.SIGINT, signal.SIGTERM)
    try:
        before = {name: signal.signal(name, stop) for name in names}
    except ValueError:
        # Only the main thread may; whoever runs us in another one cancels instead.
        before = {}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """An open stream that is cut at the end is our doing, not an error."""
    is_cut = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not (is_cut or "graceful shutdown exceeded" in record.getMessage())
